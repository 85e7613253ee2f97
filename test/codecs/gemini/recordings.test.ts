import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import test from 'node:test';
import { GatewayError } from '../../../src/codecs/canonical/error.ts';
import type { CanonicalEvent, Step } from '../../../src/codecs/canonical/event.ts';
import { fold } from '../../../src/codecs/canonical/fold.ts';
import { GenerateContentDecoder, geminiUpstream } from '../../../src/codecs/gemini/index.ts';
import { upstreamFailure } from '../../../src/http/errors.ts';
import { StreamError } from '../../../src/streams/stream-error.ts';
import { type Recording, readRecordings, splitStream } from './recordings.ts';
import { contextOf, frameOf, ordered, requestOf } from './support.ts';

const fixtures = process.env['MIZU_FIXTURES'];
const skip = fixtures === undefined ? 'MIZU_FIXTURES is not set' : false;
const context = () => contextOf({ request: requestOf({ logprobs: { top: 20 } }) });

type Expected = 'accepted' | { readonly code: string; readonly reason: string };

function outcome(recording: Recording): { verdict: Expected; events: CanonicalEvent[] } {
  const steps: Step[] = [];
  try {
    if (recording.isStream) {
      const { chunks, stray } = splitStream(recording);
      const decoder = new GenerateContentDecoder(context());
      for (const chunk of chunks) decoder.push(frameOf(chunk), steps);
      if (stray !== '') throw upstreamFailure(new StreamError('not_event_stream', 'a stray line', { text: stray }));
      decoder.end(steps);
    } else {
      steps.push(geminiUpstream.decodeResponse(recording.text, context()));
    }
  } catch (error) {
    assert.ok(error instanceof GatewayError, String(error));
    return { verdict: { code: error.code, reason: String(error.details.reason) }, events: [] };
  }
  const events = ordered(steps);
  const end = events.at(-1);
  assert.ok(end?.type === 'response.end');
  if (end.outcome.status !== 'failed') return { verdict: 'accepted', events };
  return { verdict: { code: end.outcome.error.code, reason: String(end.outcome.error.details.reason) }, events };
}

test('G2 G16 U8: every recording ends as the committed list says', { skip }, () => {
  const expected = JSON.parse(readFileSync(new URL('recordings.expected.json', import.meta.url), 'utf8'));
  const actual = Object.fromEntries(readRecordings(fixtures ?? '').map((one) => [one.name, outcome(one).verdict]));
  assert.deepEqual(actual, expected);
});

test('a recorded stream and its folded answer say the same text, and every signature is kept', { skip }, () => {
  for (const recording of readRecordings(fixtures ?? '')) {
    const { verdict, events } = outcome(recording);
    if (verdict !== 'accepted') continue;
    const whole = fold(events);
    const signed = whole.items.filter(({ item }) => 'opaque' in item && item.opaque !== undefined).length;
    const texts = whole.items.map(({ item }) => (item.kind === 'text' ? item.text : '')).join('');
    const wire = wireFacts(recording);
    assert.equal(texts, wire.text, recording.name);
    assert.equal(signed, wire.signatures, recording.name);
    const calls = whole.items.flatMap(({ item }) => (item.kind === 'toolCall' ? [item] : []));
    assert.equal(new Set(calls.map((call) => call.callId)).size, calls.length);
    for (const call of calls) assert.equal(typeof JSON.parse(call.input), 'object');
    assert.deepEqual(
      calls.map((call) => call.tool.name),
      wire.calls,
      recording.name,
    );
  }
});

test('every prefix of a recorded stream without its finish reason is an error', { skip }, () => {
  for (const recording of readRecordings(fixtures ?? '').filter((one) => one.isStream)) {
    const { chunks } = splitStream(recording);
    if (outcome(recording).verdict !== 'accepted') continue;
    const finishing = chunks.findIndex((chunk) => /"finishReason"/.test(chunk));
    for (let length = 0; length <= finishing; length += 1) {
      const cut = { ...recording, name: 'cut.chunks.txt', text: chunks.slice(0, length).join('\n') };
      assert.notEqual(outcome(cut).verdict, 'accepted', `${recording.name} cut to ${length}`);
    }
  }
});

/** Read from the JSON directly, without any code under test. Native parts keep their signature inside their body. */
function wireFacts(recording: Recording): { text: string; signatures: number; calls: string[] } {
  const bodies = recording.isStream ? splitStream(recording).chunks : [recording.text];
  const facts = { text: '', signatures: 0, calls: [] as string[] };
  for (const body of bodies) {
    for (const part of JSON.parse(body).candidates?.[0]?.content?.parts ?? []) {
      if (part.text !== undefined && part.thought !== true) facts.text += part.text;
      const isNative = ['executableCode', 'codeExecutionResult', 'toolCall', 'toolResponse'].some((kind) => kind in part);
      if (part.thoughtSignature !== undefined && !isNative) facts.signatures += 1;
      if (part.functionCall?.name !== undefined) facts.calls.push(part.functionCall.name);
    }
  }
  return facts;
}
