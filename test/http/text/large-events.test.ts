/** Events so large that they are parsed in turns of their own: the steps, their order and the endings are those of one go. */
import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { test } from 'node:test';
import type { Step } from '../../../src/codecs/canonical/event.ts';
import type { DecodeContext } from '../../../src/codecs/codec.ts';
import { codecs } from '../../../src/codecs/registry.ts';
import { verbatimNames } from '../../../src/codecs/tools/names.ts';
import { LargeWork } from '../../../src/http/request/large-work.ts';
import { AnswerStream } from '../../../src/http/text/answer-stream.ts';
import { readBody } from '../../../src/streams/body-source.ts';
import { createIdleTimers } from '../../../src/streams/idle-timers.ts';
import { createFakeClock } from '../../support/fake-clock.ts';
import { requestOf } from '../../support/wire.ts';

const chunk = (content: string, finish: string | null = null): string =>
  `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta: { content }, finish_reason: finish }] })}\n\n`;
const LONG = 'a "long" text\n'.repeat(40_000);

/** Around the pieces in which it is decoded, each character of four bytes is cut at another place. */
const WIDE = `a${'😀 "wörter" 世界\n'.repeat(100_000)}`;

const ANSWERS: Readonly<Record<string, string>> = {
  'a large event that is not ASCII alone': `${chunk('é') + chunk(WIDE) + chunk('two 世') + chunk('', 'stop')}data: [DONE]\n\n`,
  'large events, some of which are ASCII alone': `${chunk(WIDE) + chunk(LONG) + chunk('é') + chunk(WIDE) + chunk('', 'stop')}data: [DONE]\n\n`,
  'a large event that is not ASCII alone and no JSON': `${chunk('one')}data: {"id": ${WIDE.replaceAll('\n', ' ')}\n\n${chunk('two')}`,
  'a large event': `${chunk('one') + chunk(LONG) + chunk('two') + chunk('', 'stop')}data: [DONE]\n\n`,
  'large events one after another': `${chunk(LONG) + chunk(LONG) + chunk('x') + chunk(LONG) + chunk('', 'stop')}data: [DONE]\n\n`,
  'a large event at the end': chunk('one') + chunk(LONG, 'stop'),
  'a large event, and no end': chunk('one') + chunk(LONG) + chunk('two'),
  'a large event, and one that is cut off': `${chunk('one') + chunk(LONG)}data: {"id":`,
  'a large event that is no JSON': `${chunk('one')}data: {"id": ${LONG.replaceAll('\n', ' ')}\n\n${chunk('two')}`,
  'a large event, and one that is too large':
    chunk('one') + chunk(LONG) + chunk('two') + chunk('y'.repeat(3_500_000)) + chunk('three'),
  'a large event, and what is no event stream': `${chunk('one')}${chunk(LONG)}{"error":{"message":"no"}}\n`,
};

async function read(text: string, pieces: number, work?: LargeWork): Promise<{ steps: Step[]; failure: string | undefined }> {
  const codec = codecs.upstream('chat_completion');
  assert.ok(codec !== undefined);
  const context: DecodeContext = {
    owner: { channelType: 'chat_completion', scope: 's', model: 'm' },
    request: requestOf('chat', { stream: true }),
    toolNames: verbatimNames,
    options: {},
    mint: (prefix) => `${prefix}1`,
  };
  const body = new PassThrough({ highWaterMark: 1 << 30 });
  const clock = createFakeClock();
  const timers = createIdleTimers(clock, { firstDataMs: 60_000, idleMs: 60_000 }, (error) => body.destroy(error));
  const source = new AnswerStream(readBody(body), codec.decodeEvents(context), {
    clock,
    maxEventBytes: 3_400_000,
    maxBytes: 1 << 30,
    timers,
    ...(work === undefined ? {} : { work }),
  });
  const bytes = Buffer.from(text);
  for (let at = 0; at < pieces; at++)
    body.write(bytes.subarray((bytes.length * at) / pieces, (bytes.length * (at + 1)) / pieces));
  body.end();
  const steps: Step[] = [];
  try {
    while (!source.ended) if (!source.take(steps)) await new Promise<void>((resolve) => source.ready(resolve));
  } catch (thrown) {
    return { steps, failure: String(thrown) };
  }
  return { steps, failure: undefined };
}

for (const [name, text] of Object.entries(ANSWERS)) {
  for (const pieces of [1, 7]) {
    test(`${name}: read in ${pieces} pieces, it is what it is when it is parsed at once`, async () => {
      const expected = await read(text, pieces);
      const found = await read(text, pieces, new LargeWork());
      const eventsOf = (steps: readonly Step[]) => steps.flatMap(({ events }) => events);
      assert.deepEqual(eventsOf(found.steps), eventsOf(expected.steps));
      assert.deepEqual(
        found.steps.map(({ native }) => native?.text),
        expected.steps.map(({ native }) => native?.text),
      );
      assert.equal(found.failure, expected.failure);
      assert.ok(expected.steps.length > 0);
    });
  }
}
