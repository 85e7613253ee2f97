/** What the upstream of the warm-up answers: a text of some words in each protocol, whole and streamed, as literal wire bytes. */
import type { ChannelType } from '../../codecs/canonical/dialect.ts';

const WORDS =
  'Water finds its way: down the slope, around each stone, and in the end through whatever it cannot go around. '.match(
    /\S+ ?/g,
  ) ?? [];
const TEXT = WORDS.join('');
const AT = 1_760_000_000;

export interface WarmUpAnswer {
  readonly whole: string;
  readonly stream: string;
}

/** Channel types that can be warmed. */
export const ANSWERS: Readonly<Partial<Record<ChannelType, WarmUpAnswer>>> = {
  chat_completion: { whole: JSON.stringify(chatWhole()), stream: chatStream() },
  responses: { whole: JSON.stringify(response('completed')), stream: responsesStream() },
  messages: { whole: JSON.stringify(message([{ type: 'text', text: TEXT }], 'end_turn')), stream: messagesStream() },
  gemini: { whole: JSON.stringify(geminiChunk(TEXT, 'STOP')), stream: geminiStream() },
};

function data(value: object): string {
  return `data: ${JSON.stringify(value)}\n\n`;
}

function named(type: string, members: object): string {
  return `event: ${type}\n${data({ type, ...members })}`;
}

function chatUsage() {
  return { prompt_tokens: 20, completion_tokens: WORDS.length, total_tokens: 20 + WORDS.length };
}

function chatWhole(): object {
  const message = { role: 'assistant', content: TEXT, refusal: null };
  const choices = [{ index: 0, message, logprobs: null, finish_reason: 'stop' }];
  return { id: 'chatcmpl-warm', object: 'chat.completion', created: AT, model: 'warm', choices, usage: chatUsage() };
}

function chatStream(): string {
  const chunk = (choices: object[], more: object = {}): string =>
    data({ id: 'chatcmpl-warm', object: 'chat.completion.chunk', created: AT, model: 'warm', choices, ...more });
  const choice = (delta: object, finish_reason: string | null = null) => [{ index: 0, delta, logprobs: null, finish_reason }];
  return [
    chunk(choice({ role: 'assistant', content: '', refusal: null })),
    ...WORDS.map((content) => chunk(choice({ content }))),
    chunk(choice({}, 'stop')),
    chunk([], { usage: chatUsage() }),
    'data: [DONE]\n\n',
  ].join('');
}

function outputItem(status: string, text: string | undefined): object {
  const content = text === undefined ? [] : [outputPart(text)];
  return { id: 'msg_warm', type: 'message', status, role: 'assistant', content };
}

function outputPart(text: string): object {
  return { type: 'output_text', text, annotations: [], logprobs: [] };
}

function response(status: 'in_progress' | 'completed'): object {
  const isDone = status === 'completed';
  const usage = {
    input_tokens: 20,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens: WORDS.length,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: 20 + WORDS.length,
  };
  return {
    id: 'resp_warm',
    object: 'response',
    created_at: AT,
    status,
    model: 'warm',
    output: isDone ? [outputItem('completed', TEXT)] : [],
    error: null,
    incomplete_details: null,
    usage: isDone ? usage : null,
  };
}

function responsesStream(): string {
  let sequence = 0;
  const event = (type: string, members: object): string => named(type, { sequence_number: sequence++, ...members });
  const at = { item_id: 'msg_warm', output_index: 0, content_index: 0 };
  return [
    event('response.created', { response: response('in_progress') }),
    event('response.in_progress', { response: response('in_progress') }),
    event('response.output_item.added', { output_index: 0, item: outputItem('in_progress', undefined) }),
    event('response.content_part.added', { ...at, part: outputPart('') }),
    ...WORDS.map((delta) => event('response.output_text.delta', { ...at, delta, logprobs: [] })),
    event('response.output_text.done', { ...at, text: TEXT, logprobs: [] }),
    event('response.content_part.done', { ...at, part: outputPart(TEXT) }),
    event('response.output_item.done', { output_index: 0, item: outputItem('completed', TEXT) }),
    event('response.completed', { response: response('completed') }),
  ].join('');
}

function message(content: object[], stop_reason: string | null): object {
  const usage = { input_tokens: 20, output_tokens: stop_reason === null ? 1 : WORDS.length };
  return { id: 'msg_warm', type: 'message', role: 'assistant', model: 'warm', content, stop_reason, stop_sequence: null, usage };
}

function messagesStream(): string {
  return [
    named('message_start', { message: message([], null) }),
    named('content_block_start', { index: 0, content_block: { type: 'text', text: '' } }),
    named('ping', {}),
    ...WORDS.map((text) => named('content_block_delta', { index: 0, delta: { type: 'text_delta', text } })),
    named('content_block_stop', { index: 0 }),
    named('message_delta', { delta: { stop_reason: 'end_turn', stop_sequence: null }, usage: { output_tokens: WORDS.length } }),
    named('message_stop', {}),
  ].join('');
}

function geminiChunk(text: string, finishReason?: 'STOP'): object {
  const candidate = { content: { role: 'model', parts: [{ text }] }, index: 0, ...(finishReason && { finishReason }) };
  const usageMetadata = { promptTokenCount: 20, candidatesTokenCount: WORDS.length, totalTokenCount: 20 + WORDS.length };
  return { candidates: [candidate], usageMetadata, modelVersion: 'warm', responseId: 'warm' };
}

function geminiStream(): string {
  return WORDS.map((word, index) => data(geminiChunk(word, index === WORDS.length - 1 ? 'STOP' : undefined))).join('');
}
