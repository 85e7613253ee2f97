/**
 * Who uses the admin API: an admin token as a bearer, or the session of a browser that signed in with one. Failing attempts are
 * slowed and logged. A session lasts as long as this process, twelve hours at most, and no longer than its token.
 */
import { randomBytes } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { LRUCache } from 'lru-cache';
import type { Logger } from 'pino';
import type { AdminToken, AdminTokens } from '../../store/admin-tokens.ts';
import { digestOf } from '../../store/key-rules.ts';
import { type Clock, pause } from '../../streams/clock.ts';

const COOKIE = 'mizu_session';
const SESSION_MS = 12 * 60 * 60_000;
const MOST_SESSIONS = 1_000;

/** Failures within {@link WINDOW_MS} that are answered at once; later ones wait {@link DELAY_MS}. */
const AT_ONCE = 10;
const WINDOW_MS = 60_000;
const DELAY_MS = 1_000;
/** Failures that may wait at the same time; more are refused unread. */
const MOST_WAITING = 50;
/** Between two log lines about failures. */
const LOG_MS = 10_000;

export interface SignInOptions {
  readonly tokens: () => Promise<AdminTokens>;
  readonly clock: Clock;
  readonly log: Logger;
}

export type SignedIn =
  | { readonly token: AdminToken; readonly by: 'bearer' | 'session' }
  /** `busy`: too many failures wait. */
  | 'unauthorized'
  | 'busy';

export class SignIn {
  readonly #options: SignInOptions;
  /** By the digest of what is in the cookie. */
  readonly #sessions: LRUCache<string, { readonly token: AdminToken; readonly untilMs: number }>;
  #failures: number[] = [];
  #waiting = 0;
  #unlogged = 0;
  #loggedAtMs = Number.NEGATIVE_INFINITY;

  constructor(options: SignInOptions) {
    this.#options = options;
    this.#sessions = new LRUCache({ max: MOST_SESSIONS });
  }

  async identify(request: IncomingMessage): Promise<SignedIn> {
    const { authorization } = request.headers;
    if (authorization !== undefined) {
      const secret = /^Bearer +(\S+) *$/i.exec(authorization)?.[1];
      return await this.#check(secret, 'bearer', request);
    }
    return (await this.#bySession(request)) ?? 'unauthorized';
  }

  /** Whether who was identified by this request still would be: for what goes on after it was answered. */
  async lasts({ token, by }: Exclude<SignedIn, string>, request: IncomingMessage): Promise<boolean> {
    return by === 'session' ? (await this.#bySession(request)) !== undefined : (await this.#known(token)) !== undefined;
  }

  async #bySession(request: IncomingMessage): Promise<Exclude<SignedIn, string> | undefined> {
    const cookie = sessionOf(request);
    const session = cookie === undefined ? undefined : this.#sessions.get(digestOf(cookie));
    if (session === undefined || session.untilMs <= this.#options.clock.now()) return undefined;
    const token = await this.#known(session.token);
    return token === undefined ? undefined : { token, by: 'session' };
  }

  /** The token may have been deleted meanwhile, and another made of the same name. */
  async #known({ name, createdAtMs }: AdminToken): Promise<AdminToken | undefined> {
    const tokens = await (await this.#options.tokens()).list();
    return tokens.find((one) => one.name === name && one.createdAtMs === createdAtMs);
  }

  /** A session for the token: the value of `set-cookie`, or why there is none. */
  async open(
    secret: string,
    request: IncomingMessage,
  ): Promise<{ readonly token: AdminToken; readonly cookie: string } | Exclude<SignedIn, object>> {
    const found = await this.#check(secret, 'session', request);
    if (typeof found === 'string') return found;
    const value = randomBytes(32).toString('base64url');
    this.#sessions.set(digestOf(value), { token: found.token, untilMs: this.#options.clock.now() + SESSION_MS });
    return { token: found.token, cookie: cookieOf(value, SESSION_MS / 1000, request) };
  }

  /** Ends the session of the request; gives the `set-cookie` that forgets it. */
  close(request: IncomingMessage): string {
    const cookie = sessionOf(request);
    if (cookie !== undefined) this.#sessions.delete(digestOf(cookie));
    return cookieOf('', 0, request);
  }

  async #check(secret: string | undefined, by: 'bearer' | 'session', request: IncomingMessage): Promise<SignedIn> {
    const token = secret === undefined ? undefined : await (await this.#options.tokens()).authenticate(secret);
    return token === undefined ? await this.#failed(request) : { token, by };
  }

  async #failed(request: IncomingMessage): Promise<'unauthorized' | 'busy'> {
    const { clock } = this.#options;
    const nowMs = clock.now();
    this.#tell(nowMs, request.socket.remoteAddress);
    if (this.#waiting >= MOST_WAITING) return 'busy';
    this.#failures = this.#failures.filter((at) => at > nowMs - WINDOW_MS && at <= nowMs);
    if (this.#failures.length < AT_ONCE) {
      this.#failures.push(nowMs);
      return 'unauthorized';
    }
    this.#waiting += 1;
    try {
      await pause(clock, DELAY_MS, new AbortController().signal);
    } finally {
      this.#waiting -= 1;
    }
    return 'unauthorized';
  }

  #tell(nowMs: number, ip: string | undefined): void {
    this.#unlogged += 1;
    if (nowMs - this.#loggedAtMs < LOG_MS && nowMs >= this.#loggedAtMs) return;
    this.#options.log.warn({ attempts: this.#unlogged, ip }, 'failing sign-ins of the admin API');
    this.#unlogged = 0;
    this.#loggedAtMs = nowMs;
  }
}

/** `Secure` only where the connection is: a browser would not send it back to a plain listener on loopback. */
function cookieOf(value: string, maxAgeSeconds: number, request: IncomingMessage): string {
  const secure = 'encrypted' in request.socket ? '; Secure' : '';
  return `${COOKIE}=${value}; Path=/admin/v1/; Max-Age=${maxAgeSeconds}; HttpOnly; SameSite=Strict${secure}`;
}

function sessionOf({ headers }: IncomingMessage): string | undefined {
  for (const pair of headers.cookie?.split(';') ?? []) {
    const [name = '', value] = pair.trim().split('=', 2);
    if (name === COOKIE && value !== undefined && value !== '') return value;
  }
  return undefined;
}
