/**
 * The hooks of the pump and the calls that it owes its source and its writer, each by itself; the bytes are
 * pump.property.test.ts's.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type PumpOptions, type PumpSource, type PumpWriter, pump } from '../../src/streams/pump.ts';
import { type Sealed, sealed } from '../../src/streams/seal.ts';
import { StreamError } from '../../src/streams/stream-error.ts';
import { type Reaction, scripted } from '../support/scripted-stage.ts';

interface Given {
  /** What each read brings; a failure ends the source. */
  readonly reads?: readonly (readonly string[] | Error)[];
  readonly script?: readonly Reaction[];
  readonly options?: PumpOptions<string, string>;
  /** Writes that leave the reader behind. */
  readonly full?: boolean;
  /** Instead of what `script` says. */
  readonly step?: Sealed<string, string>;
  /** Why the reader is gone. */
  readonly gone?: () => unknown;
}

/** Everything that is called, in order. */
async function pumped(
  { reads = [], script = [], options = {}, full = false, gone = () => undefined, ...given }: Given,
  calls: string[] = [],
): Promise<readonly string[]> {
  const left = [...reads];
  const source: PumpSource<string> = {
    take(out) {
      const read = left.shift();
      if (read instanceof Error) throw read;
      out.push(...(read ?? []));
      return true;
    },
    ready: () => assert.fail('everything is here'),
    get ended() {
      return left.length === 0;
    },
    pause: () => calls.push('pause'),
    resume: () => calls.push('resume'),
    cancel: (reason) => calls.push(`cancel ${reason instanceof StreamError ? reason.reason : reason}`),
  };
  const writer: PumpWriter<string> = {
    gone,
    write(words) {
      calls.push(`write ${words.join()}`);
      return full ? Promise.resolve() : undefined;
    },
    async end(words) {
      calls.push(`end ${words.join()}`);
    },
    destroy: (reason) => calls.push(`destroy ${reason}`),
  };
  const step = given.step ?? sealed(scripted('s', script), (reason) => String(reason));
  await pump(source, step, writer, { ...options, onOutput: () => calls.push('words') }).catch((reason: unknown) =>
    calls.push(`rejected ${reason}`),
  );
  return calls;
}

const say = (words: number, next: Reaction['next'] = 'go on'): Reaction => ({ words, next });

test('words that were held are said first, and are kept by nobody', async () => {
  const held = ['a'];
  const calls = await pumped({ reads: [['b']], script: [say(1), say(1), say(0)], options: { held } });
  assert.deepEqual(calls, ['write s(a)#0', 'words', 'end s(b)#0', 'words']);
  assert.deepEqual(held, []);
});

test('a read that says nothing writes nothing; an end without words tells of none', async () => {
  assert.deepEqual(await pumped({ reads: [['a'], ['b']], script: [say(0), say(0), say(0)] }), ['end ']);
});

test('a source that has not ended is let go once everything was said; one that has is not', async () => {
  const script = [say(1, 'end')];
  assert.deepEqual(await pumped({ reads: [['a'], ['b']], script }), ['end s(a)#0,s.END', 'words', 'cancel ended']);
  assert.deepEqual(await pumped({ reads: [['a']], script }), ['end s(a)#0,s.END', 'words']);
});

test('what must be done before the last words is waited for, and may put others in their place', async () => {
  const calls: string[] = [];
  const beforeEnd = async (words: string[]) => {
    calls.push(`end of ${words.join()}?`);
    await new Promise((resolve) => setImmediate(resolve));
    words[0] = 'other';
  };
  await pumped({ reads: [['a'], ['b']], script: [say(1), say(1), say(0)], options: { beforeEnd } }, calls);
  assert.deepEqual(calls, ['write s(a)#0', 'words', 'end of s(b)#0?', 'end other', 'words']);
});

test('while the reader is behind the source is paused', async () => {
  const calls = await pumped({ reads: [['a'], ['b']], script: [say(1), say(1), say(0)], full: true });
  assert.deepEqual(calls, ['write s(a)#0', 'words', 'pause', 'resume', 'end s(b)#0', 'words']);
});

test('a failure of the source becomes words, except where it says that nobody is there', async () => {
  const reads = [['a'], new Error('gone')];
  const script = [say(1)];
  assert.deepEqual(await pumped({ reads, script }), ['write s(a)#0', 'words', 'end s.FAIL(Error: gone)', 'words']);
  const calls = await pumped({ reads, script, options: { isGone: () => true } });
  assert.deepEqual(calls, ['write s(a)#0', 'words', 'cancel Error: gone', 'rejected Error: gone']);
});

test('a failure that has no words: what was said before it and the last words go out and the connection is cut, not where the reader left', async () => {
  let left: Error | undefined;
  const broken = (leaves: boolean): Sealed<string, string> => ({
    over: false,
    push(batch, out) {
      out.push(...batch);
      if (leaves) left = new Error('left');
      throw new Error('broken');
    },
    end: () => assert.fail(),
    abort: () => assert.fail(),
  });
  const end = ['cancel Error: broken', 'destroy Error: broken', 'rejected Error: broken'];
  const finalFrames = ({ message }: Error) => [`bye: ${message}`];
  assert.deepEqual(await pumped({ reads: [['a']], step: broken(false), options: { finalFrames } }), [
    'write a,bye: broken',
    ...end,
  ]);
  assert.deepEqual(await pumped({ reads: [['a']], step: broken(false) }), end);
  const gone = (): unknown => left;
  assert.deepEqual(await pumped({ reads: [['a']], step: broken(true), options: { finalFrames }, gone }), end);
});
