/**
 * Faults at every point where a request leaves our own code: the dependencies of a gateway are wrapped, a run notes each call,
 * and later runs break one of them. Nobody keeps a list of the points.
 */
import { StoreError } from '../../src/store/store-error.ts';

/**
 * `throw`: at once. `reject`: the promise rejects. `refuse`: it rejects as a store does, which has told of it. `hang`: it never
 * settles. `unsaid`: it is done, and rejects as a store does whose answer was lost. `cut`: the connection breaks. `leave`: nothing
 * breaks, but the client has left. `jump`: nothing breaks, but the wall clock is a month ahead. `kill`: this process ends as by
 * `kill -9`, which only a process of its own is asked to do.
 */
export type Mode = 'throw' | 'reject' | 'refuse' | 'unsaid' | 'hang' | 'cut' | 'leave' | 'jump' | 'kill';

export interface Point {
  /** What is called, and for which time. */
  readonly id: string;
  readonly kind: 'sync' | 'async' | 'upstream';
}

const MODES = {
  sync: ['throw', 'leave', 'jump'],
  async: ['throw', 'reject', 'hang', 'leave', 'jump'],
  upstream: ['cut', 'hang', 'leave', 'jump'],
} as const satisfies Record<Point['kind'], readonly Mode[]>;

export const modesOf = ({ kind }: Point): readonly Mode[] => MODES[kind];

export class Injector {
  readonly points = new Map<string, Point>();
  /** Calls that have not settled, without those that were made to hang. */
  outstanding = 0;
  /** The fault has been made. */
  hit = false;
  onLeave: () => void = () => undefined;
  onJump: () => void = () => undefined;
  readonly #counts = new Map<string, number>();
  #faults: ReadonlyMap<string, Mode> | undefined;

  /** From now on calls are counted, and these are broken. */
  start(faults: ReadonlyMap<string, Mode> = new Map()): void {
    this.points.clear();
    this.#counts.clear();
    this.hit = false;
    this.#faults = faults;
  }

  stop(): void {
    this.#faults = undefined;
  }

  /** `nested`: names of members, and of what methods return, that are wrapped as well. */
  wrap<T extends object>(name: string, object: T, nested: readonly string[] = []): T {
    return new Proxy(object, {
      get: (target, member) => {
        const value: unknown = Reflect.get(target, member, target);
        if (typeof member !== 'string') return value;
        const path = `${name}.${member}`;
        const goesDeeper = nested.includes(member);
        if (typeof value === 'function') {
          return (...given: unknown[]) => {
            const result: unknown = this.#call(path, () => Reflect.apply(value, target, given));
            return goesDeeper && isObject(result) ? this.wrap(path, result, nested) : result;
          };
        }
        return goesDeeper && isObject(value) ? this.wrap(path, value, nested) : value;
      },
    });
  }

  /** What becomes of a step of an upstream. */
  step(name: string): 'go' | 'hang' | 'cut' {
    const { id, mode } = this.#reach(name);
    if (id === undefined) return 'go';
    this.points.set(id, { id, kind: 'upstream' });
    if (mode === 'leave') this.onLeave();
    if (mode === 'jump') this.onJump();
    if (mode === 'kill') die();
    return mode === 'hang' || mode === 'cut' ? mode : 'go';
  }

  #call(name: string, run: () => unknown): unknown {
    const { id, mode } = this.#reach(name);
    if (id === undefined) return run();
    switch (mode) {
      case 'throw':
        throw new Error(`injected: ${id}`);
      case 'reject':
        return Promise.reject(new Error(`injected: ${id}`));
      case 'refuse':
        return Promise.reject(new StoreError('disk_full', `injected: ${id}`));
      case 'hang':
        return new Promise(() => undefined);
      case 'leave':
        this.onLeave();
        break;
      case 'jump':
        this.onJump();
        break;
      case 'kill':
        die();
    }
    const result = run();
    this.points.set(id, { id, kind: isThenable(result) ? 'async' : 'sync' });
    if (!isThenable(result)) return result;
    this.#watch(result);
    return mode === 'unsaid' ? unsaid(result, id) : result;
  }

  #reach(name: string): { readonly id: string | undefined; readonly mode: Mode | undefined } {
    if (this.#faults === undefined) return { id: undefined, mode: undefined };
    const count = this.#counts.get(name) ?? 0;
    this.#counts.set(name, count + 1);
    const id = `${name}#${count}`;
    const mode = this.#faults.get(id);
    this.hit ||= mode !== undefined;
    return { id, mode };
  }

  #watch(promise: PromiseLike<unknown>): void {
    this.outstanding += 1;
    const over = (): void => {
      this.outstanding -= 1;
    };
    promise.then(over, over);
  }
}

async function unsaid(result: PromiseLike<unknown>, id: string): Promise<never> {
  await result;
  throw new StoreError('unavailable', `injected: ${id} was done, and its answer lost`);
}

function die(): void {
  process.kill(process.pid, 'SIGKILL');
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return isObject(value) && 'then' in value && typeof value.then === 'function';
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}
