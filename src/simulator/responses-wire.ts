/** The literal bytes of a responses answer: the stream's order and numbers, the whole object, the compact object. */
import type { Turn } from './dialect.ts';
import { type Frame, namedFrame } from './frame.ts';
import type { JsonObject } from './json.ts';
import { type Ending, createEnvelope, responsesUsage } from './responses-envelope.ts';
import { type OutputItem, outputItems } from './responses-items.ts';
import { finishOf, type Reply, roughTokens, usageOf } from './reply.ts';

interface Outcome {
  readonly status: 'completed' | 'incomplete' | 'failed';
  readonly ending: Ending;
}

function outcomeOf(reply: Reply, turn: Turn): Outcome {
  const usage = usageOf(reply, JSON.stringify(turn.body.input ?? ''));
  const finish = finishOf(reply);
  if (finish === 'failed') {
    return { status: 'failed', ending: { usage, error: reply.error ?? { code: 'server_error', message: 'The model failed.' } } };
  }
  if (finish === 'stop' || finish === 'tool_calls') return { status: 'completed', ending: { usage } };
  return { status: 'incomplete', ending: { usage, incomplete: finish === 'length' ? 'max_output_tokens' : finish } };
}

export function responsesWhole(reply: Reply, turn: Turn, remember: Remember): string {
  const { status, ending } = outcomeOf(reply, turn);
  const envelope = createEnvelope(reply, turn);
  const output = outputItems(reply, turn, status === 'completed' ? 'completed' : 'incomplete').map((item) => item.final);
  remember(envelope.id, output);
  return envelope.at(status, output, ending);
}

/** Called with the final output of the answer. */
export type Remember = (responseId: string, output: readonly JsonObject[]) => void;

export function responsesStream(reply: Reply, turn: Turn, remember: Remember): Frame[] {
  const { status, ending } = outcomeOf(reply, turn);
  const envelope = createEnvelope(reply, turn);
  const items = outputItems(reply, turn, status === 'completed' ? 'completed' : 'incomplete');
  const output = items.map((item) => item.final);
  remember(envelope.id, output);
  const frames: Frame[] = [];
  const sayResponse = (part: 'start' | 'terminal', type: string, response: string) =>
    frames.push(namedFrame(part, type, `{"type":"${type}","response":${response},"sequence_number":${frames.length}}`));
  const say = (type: string, members: JsonObject) =>
    frames.push(namedFrame('content', type, JSON.stringify({ type, ...members, sequence_number: frames.length })));

  sayResponse('start', 'response.created', envelope.at('in_progress', []));
  sayResponse('start', 'response.in_progress', envelope.at('in_progress', []));
  if (reply.interleave === true) sayInterleaved(items, say);
  else for (const [index, item] of items.entries()) sayItem(item, index, say);
  sayResponse('terminal', `response.${status}`, envelope.at(status, output, ending));
  return frames;
}

type Say = (type: string, members: JsonObject) => void;

function sayItem(item: OutputItem, output_index: number, say: Say): void {
  say('response.output_item.added', { item: item.added, output_index });
  for (const event of item.events) say(event.type, { ...event.members, output_index });
  say('response.output_item.done', { item: item.done, output_index });
}

function sayInterleaved(items: readonly OutputItem[], say: Say): void {
  items.forEach((item, output_index) => {
    say('response.output_item.added', { item: item.added, output_index });
  });
  const rounds = Math.max(0, ...items.map((item) => item.events.length));
  for (let round = 0; round < rounds; round += 1) {
    items.forEach((item, output_index) => {
      const event = item.events[round];
      if (event !== undefined) say(event.type, { ...event.members, output_index });
    });
  }
  items.forEach((item, output_index) => {
    say('response.output_item.done', { item: item.done, output_index });
  });
}

/** The answer of `/responses/compact`: user messages kept word for word, the rest one opaque item. */
export function compactWhole(history: readonly JsonObject[], turn: Turn): string {
  const kept = history
    .filter(({ role }) => role === 'user')
    .map((item) => ({
      id: turn.mint('msg_'),
      type: 'message',
      status: 'completed',
      content: typeof item.content === 'string' ? [{ type: 'input_text', text: item.content }] : (item.content ?? []),
      role: 'user',
    }));
  const text = JSON.stringify(history);
  const id = turn.mint('cmp_');
  const usage = { input: Math.max(1, roughTokens(text)), output: Math.max(1, Math.ceil(roughTokens(text) / 4)) };
  return JSON.stringify({
    id: turn.mint('resp_'),
    object: 'response.compaction',
    created_at: turn.createdS,
    output: [...kept, { id, type: 'compaction', encrypted_content: turn.seals.issue('compaction', '', id) }],
    usage: responsesUsage(usage),
  });
}
