/**
 * Arbitrary conversations of no dialect, rich enough to hold what all clients can say, and their literal spelling in each client
 * dialect. The writers share no code with the codecs.
 */
import fc from 'fast-check';
import { callId, jsonObjectText, text } from './response.ts';

export interface TalkCall {
  readonly id: string;
  readonly name: string;
  readonly input: string;
  readonly result: string;
  readonly image: boolean;
  readonly failed: boolean;
}
export interface Turn {
  readonly user: readonly string[];
  readonly image: 'none' | 'inline' | 'url';
  readonly pdf: boolean;
  readonly thought: string | undefined;
  readonly says: string | undefined;
  readonly calls: readonly TalkCall[];
}
export interface Talk {
  readonly system: string | undefined;
  /** The last one is the open question: its assistant side is not said. */
  readonly turns: readonly Turn[];
  readonly tools: readonly { readonly name: string; readonly description: string; readonly parameters: object }[];
  readonly choice: 'auto' | 'none' | 'required' | 'one' | undefined;
  readonly parallel: boolean | undefined;
  readonly cap: number;
  readonly temperature: number | undefined;
  readonly stop: readonly string[] | undefined;
  readonly effort: string | undefined;
  readonly schema: boolean;
  readonly user: string | undefined;
  readonly stream: boolean;
}

const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const PDF = Buffer.from('%PDF-1.4\n%%EOF').toString('base64');
const NAMES = ['get_weather', 'search', 'run', 'lookup_2'] as const;

const words = text().filter((value) => value.trim() !== '');

const call: fc.Arbitrary<TalkCall> = fc.record({
  id: callId,
  name: fc.constantFrom(...NAMES),
  input: jsonObjectText,
  result: words,
  image: fc.boolean(),
  failed: fc.boolean(),
});

const turn: fc.Arbitrary<Turn> = fc.record({
  user: fc.array(words, { minLength: 1, maxLength: 2 }),
  image: fc.constantFrom('none', 'none', 'inline', 'url'),
  pdf: fc.constantFrom(false, false, true),
  thought: fc.option(words, { nil: undefined }),
  says: fc.option(words, { nil: undefined }),
  calls: fc.array(call, { maxLength: 3 }),
});

const parameters = fc.constantFrom(
  { type: 'object', properties: { q: { type: 'string' } }, required: ['q'] },
  { type: 'object', properties: { '10': { type: 'integer', minimum: 0 }, '2': { type: ['string', 'null'] } } },
  { type: 'object', properties: {} },
  {
    type: 'object',
    properties: { type: { type: 'string', enum: ['a', 'b'] }, $ref: { $ref: '#/$defs/x' } },
    $defs: { x: { type: 'number' } },
  },
);

export const talk: fc.Arbitrary<Talk> = fc
  .record({
    system: fc.option(words, { nil: undefined }),
    turns: fc.array(turn, { minLength: 1, maxLength: 4 }),
    parameters: fc.array(parameters, { minLength: NAMES.length, maxLength: NAMES.length }),
    choice: fc.constantFrom(undefined, 'auto', 'none', 'required', 'one'),
    parallel: fc.constantFrom(undefined, true, false),
    cap: fc.integer({ min: 40_000, max: 60_000 }),
    temperature: fc.constantFrom(undefined, 0, 1),
    stop: fc.constantFrom(undefined, ['END'], ['a', 'b']),
    effort: fc.constantFrom(undefined, undefined, 'none', 'low', 'high'),
    schema: fc.boolean(),
    user: fc.constantFrom(undefined, 'user-7'),
    stream: fc.boolean(),
  })
  .map(({ parameters: schemas, ...rest }) => ({
    ...rest,
    turns: rest.turns.map((one) => (one.says === undefined && one.calls.length === 0 ? { ...one, says: 'ok' } : one)),
    tools: NAMES.map((name, index) => ({ name, description: `Does ${name}.`, parameters: schemas[index] ?? {} })),
    // Models that think take one temperature and choose tools themselves.
    ...(rest.effort === undefined || rest.effort === 'none' ? {} : { temperature: undefined, choice: undefined }),
  }))
  .filter(({ turns }) => {
    const ids = turns.flatMap(({ calls }) => calls.map(({ id }) => id));
    return new Set(ids).size === ids.length;
  });

const set = (members: Record<string, unknown>): object =>
  Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined));

const ANSWER = { type: 'object', properties: { answer: { type: 'string' } }, required: ['answer'], additionalProperties: false };
const history = (said: Talk): readonly { readonly turn: Turn; readonly isOpen: boolean }[] =>
  said.turns.map((one, index) => ({ turn: one, isOpen: index === said.turns.length - 1 }));

export function asChat(said: Talk): object {
  const messages: object[] = said.system === undefined ? [] : [{ role: 'system', content: said.system }];
  for (const { turn: one, isOpen } of history(said)) {
    messages.push({ role: 'user', content: chatParts(one) });
    if (isOpen) continue;
    const tool_calls = one.calls.map(({ id, name, input }) => ({ id, type: 'function', function: { name, arguments: input } }));
    const calls = tool_calls.length === 0 ? {} : { tool_calls };
    const thought = one.thought === undefined ? {} : { reasoning_content: one.thought };
    messages.push({ role: 'assistant', content: one.says ?? null, ...thought, ...calls });
    for (const { id, result } of one.calls) messages.push({ role: 'tool', tool_call_id: id, content: result });
    if (one.calls.length > 0) messages.push({ role: 'assistant', content: 'Done.' });
  }
  return set({
    model: 'logical-model',
    messages,
    tools: said.tools.map((tool) => ({ type: 'function', function: tool })),
    tool_choice: said.choice === 'one' ? { type: 'function', function: { name: 'search' } } : said.choice,
    parallel_tool_calls: said.parallel,
    max_completion_tokens: said.cap,
    temperature: said.temperature,
    stop: said.stop,
    reasoning_effort: said.effort,
    response_format: said.schema
      ? { type: 'json_schema', json_schema: { name: 'answer', schema: ANSWER, strict: true } }
      : undefined,
    user: said.user,
    stream: said.stream,
  });
}

function chatParts(one: Turn): object[] {
  const parts: object[] = one.user.map((value) => ({ type: 'text', text: value }));
  if (one.image === 'inline') parts.push({ type: 'image_url', image_url: { url: `data:image/png;base64,${PNG}` } });
  if (one.image === 'url') parts.push({ type: 'image_url', image_url: { url: 'https://example.com/cat.png', detail: 'low' } });
  if (one.pdf) parts.push({ type: 'file', file: { filename: 'a.pdf', file_data: `data:application/pdf;base64,${PDF}` } });
  return parts;
}

export function asResponses(said: Talk): object {
  const input: object[] = [];
  for (const { turn: one, isOpen } of history(said)) {
    input.push({ type: 'message', role: 'user', content: responsesParts(one) });
    if (isOpen) continue;
    if (one.says !== undefined)
      input.push({ role: 'assistant', content: [{ type: 'output_text', text: one.says, annotations: [] }] });
    for (const { id, name, input: args } of one.calls) input.push({ type: 'function_call', call_id: id, name, arguments: args });
    for (const { id, result, image } of one.calls) {
      const parts = [
        { type: 'input_text', text: result },
        ...(image ? [{ type: 'input_image', image_url: `data:image/png;base64,${PNG}` }] : []),
      ];
      input.push({ type: 'function_call_output', call_id: id, output: image ? parts : result });
    }
    if (one.calls.length > 0)
      input.push({ role: 'assistant', content: [{ type: 'output_text', text: 'Done.', annotations: [] }] });
  }
  return set({
    model: 'logical-model',
    instructions: said.system,
    input,
    tools: said.tools.map((tool) => ({ type: 'function', ...tool, strict: false })),
    tool_choice: said.choice === 'one' ? { type: 'function', name: 'search' } : said.choice,
    parallel_tool_calls: said.parallel,
    max_output_tokens: said.cap,
    temperature: said.temperature,
    reasoning: said.effort === undefined ? undefined : { effort: said.effort },
    text: said.schema ? { format: { type: 'json_schema', name: 'answer', schema: ANSWER, strict: true } } : undefined,
    user: said.user,
    stream: said.stream,
    store: false,
  });
}

function responsesParts(one: Turn): object[] {
  const parts: object[] = one.user.map((value) => ({ type: 'input_text', text: value }));
  if (one.image === 'inline') parts.push({ type: 'input_image', image_url: `data:image/png;base64,${PNG}`, detail: 'auto' });
  if (one.image === 'url') parts.push({ type: 'input_image', image_url: 'https://example.com/cat.png', detail: 'low' });
  if (one.pdf) parts.push({ type: 'input_file', filename: 'a.pdf', file_data: `data:application/pdf;base64,${PDF}` });
  return parts;
}

export function asMessages(said: Talk): object {
  const messages: object[] = [];
  for (const { turn: one, isOpen } of history(said)) {
    messages.push({ role: 'user', content: messagesParts(one) });
    if (isOpen) continue;
    const content: object[] = one.says === undefined ? [] : [{ type: 'text', text: one.says }];
    for (const { id, name, input } of one.calls) content.push({ type: 'tool_use', id, name, input: JSON.parse(input) });
    messages.push({ role: 'assistant', content });
    if (one.calls.length === 0) continue;
    messages.push({ role: 'user', content: one.calls.map(messagesResult) });
    messages.push({ role: 'assistant', content: [{ type: 'text', text: 'Done.' }] });
  }
  const forced =
    said.choice === 'required' ? { type: 'any' } : said.choice === 'one' ? { type: 'tool', name: 'search' } : undefined;
  const choice = forced ?? (said.choice === undefined ? undefined : { type: said.choice });
  const isSerial = said.parallel === false && said.choice !== 'none';
  return set({
    model: 'logical-model',
    max_tokens: said.cap,
    system: said.system === undefined ? undefined : [{ type: 'text', text: said.system }],
    messages,
    tools: said.tools.map(({ name, description, parameters: input_schema }) => ({ name, description, input_schema })),
    tool_choice: isSerial ? { type: 'auto', ...choice, disable_parallel_tool_use: true } : choice,
    temperature: said.temperature,
    stop_sequences: said.stop,
    thinking: said.effort === 'none' ? { type: 'disabled' } : said.effort === undefined ? undefined : { type: 'adaptive' },
    output_config: outputConfig(said),
    metadata: said.user === undefined ? undefined : { user_id: said.user },
    stream: said.stream,
  });
}

function outputConfig(said: Talk): object | undefined {
  const effort = said.effort === undefined || said.effort === 'none' ? undefined : said.effort;
  if (effort === undefined && !said.schema) return undefined;
  return set({ effort, format: said.schema ? { type: 'json_schema', schema: ANSWER } : undefined });
}

function messagesResult({ id, result, image, failed }: TalkCall): object {
  const picture = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: PNG } };
  const content = image ? [{ type: 'text', text: result }, picture] : result;
  return { type: 'tool_result', tool_use_id: id, content, ...(failed ? { is_error: true } : {}) };
}

function messagesParts(one: Turn): object[] {
  const parts: object[] = one.user.map((value) => ({ type: 'text', text: value }));
  if (one.image === 'inline') parts.push({ type: 'image', source: { type: 'base64', media_type: 'image/png', data: PNG } });
  if (one.image === 'url') parts.push({ type: 'image', source: { type: 'url', url: 'https://example.com/cat.png' } });
  if (one.pdf)
    parts.push({ type: 'document', title: 'a.pdf', source: { type: 'base64', media_type: 'application/pdf', data: PDF } });
  return parts;
}

export const WRITERS = { chat: asChat, responses: asResponses, messages: asMessages } as const;
