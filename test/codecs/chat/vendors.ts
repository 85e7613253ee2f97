/**
 * How vendors of chat completions spell the parts of an answer, as literal chunks (protocols: chat completions, "Deviations in
 * the wild", and what their servers and clients show in public). Shares nothing with the codecs.
 */
import type { JsonObject } from '../../../src/codecs/canonical/json.ts';

export interface Call {
  readonly id: string;
  readonly name: string;
  readonly pieces: readonly string[];
}

export interface Answer {
  readonly thought: readonly string[];
  readonly text: readonly string[];
  readonly calls: readonly Call[];
  readonly isCut: boolean;
  readonly usage: { readonly prompt: number; readonly cached: number; readonly completion: number; readonly reasoning: number };
}

/** How a vendor says the parts of an answer: deltas of choice 0, and the chunks of its end. */
export interface Vendor {
  readonly thought: (piece: string) => JsonObject;
  readonly text?: (piece: string) => JsonObject;
  readonly call: (call: Call, at: number) => readonly JsonObject[];
  readonly hasIds?: false;
  readonly end: (answer: Answer) => readonly JsonObject[];
}

const calls = (...entries: JsonObject[]): JsonObject => ({ tool_calls: entries });
export const choice = (delta: JsonObject, finish: string | null = null, more: JsonObject = {}): JsonObject => ({
  choices: [{ index: 0, delta, finish_reason: finish, ...more }],
});
export const reason = ({ isCut, calls: { length } }: Answer, called = 'tool_calls'): string =>
  isCut ? 'length' : length > 0 ? called : 'stop';
const whole = ({ id, name, pieces }: Call): JsonObject => ({ id, function: { name, arguments: pieces.join('') } });

function counted({ usage: { prompt, cached, completion, reasoning } }: Answer, more: JsonObject = {}): JsonObject {
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    prompt_tokens_details: { cached_tokens: cached },
    completion_tokens_details: { reasoning_tokens: reasoning, audio_tokens: null },
    ...more,
  };
}

/** A head, then the arguments, each piece with what the vendor repeats of the head. */
const inPieces =
  (first: string | null | undefined, again: (call: Call, piece: number) => JsonObject, name?: string | null) =>
  (call: Call, index: number): JsonObject[] => {
    const head = { name: call.name, ...(first === undefined ? {} : { arguments: first }) };
    return [
      calls({ index, id: call.id, type: 'function', function: head }),
      ...call.pieces.map((piece, at) => {
        const said = { ...(name === undefined ? {} : { name }), arguments: piece };
        return calls({ index, ...again(call, at), function: said });
      }),
    ];
  };

const own = (answer: Answer): JsonObject => ({ choices: [], usage: counted(answer) });

export const VENDORS: Readonly<Record<string, Vendor>> = {
  OpenAI: {
    thought: (piece) => ({ reasoning_content: piece }),
    call: inPieces('', () => ({})),
    end: (answer) => [choice({}, reason(answer)), own(answer)],
  },
  DeepSeek: {
    thought: (piece) => ({ content: null, reasoning_content: piece }),
    text: (piece) => ({ content: piece, reasoning_content: null }),
    call: inPieces('', () => ({})),
    end: (answer) => [
      {
        ...choice({ content: '', reasoning_content: null }, reason(answer)),
        usage: counted(answer, { prompt_tokens_details: null, prompt_cache_hit_tokens: answer.usage.cached }),
      },
    ],
  },
  Groq: {
    thought: (piece) => ({ reasoning: piece, channel: 'analysis' }),
    call: (call, index) => [calls({ index, type: 'function', ...whole(call) })],
    end: (answer) => [{ ...choice({}, reason(answer)), x_groq: { id: 'req', usage: counted(answer) } }],
  },
  Mistral: {
    thought: (piece) => ({ content: [{ type: 'thinking', thinking: [{ type: 'text', text: piece }] }] }),
    call: (call) => [calls(whole(call))],
    end: (answer) => [{ ...choice({ content: '' }, reason(answer)), usage: counted(answer) }],
  },
  xAI: {
    thought: (piece) => ({ role: 'assistant', reasoning_content: piece }),
    call: (call, index) => [calls({ index, type: 'function', ...whole(call) })],
    end: (answer) => {
      const { completion, reasoning } = answer.usage;
      return [choice({}, reason(answer)), { choices: [], usage: counted(answer, { completion_tokens: completion - reasoning }) }];
    },
  },
  Qwen: {
    thought: (piece) => ({ content: null, reasoning_content: piece }),
    call: inPieces(null, () => ({ id: '', type: 'function' }), ''),
    end: (answer) => [choice({ content: '' }, reason(answer)), own(answer)],
  },
  SGLang: {
    thought: (piece) => ({ role: null, content: null, reasoning_content: piece, tool_calls: null }),
    call: inPieces('', () => ({ id: null, type: null }), null),
    end: (answer) => [choice({ role: null, content: null }, reason(answer), { matched_stop: 1 }), own(answer)],
  },
  'OCI, LM Studio': {
    thought: (piece) => ({ reasoning: piece }),
    call: inPieces('', ({ id }, piece) => ({ id: `${id}_${piece}`, type: 'function' }), ''),
    end: (answer) => [choice({}, reason(answer, 'stop')), own(answer)],
  },
  vLLM: {
    thought: (piece) => ({ reasoning: piece, reasoning_content: piece }),
    call: inPieces(undefined, ({ id, name }) => ({ id, type: 'function', function: { name } })),
    end: (answer) => [
      { ...choice({}, null), usage: counted(answer, { completion_tokens: 1 }) },
      choice({ content: '' }, reason(answer)),
      { choices: [], usage: counted(answer, { prompt_tokens_details: null }) },
    ],
  },
  'Gemini, Ollama': {
    thought: (piece) => ({ role: 'assistant', content: '', reasoning: piece }),
    call: (call) => [calls({ index: 0, type: 'function', ...whole(call) })],
    end: (answer) => [choice({ role: 'assistant', content: '' }, reason(answer, 'stop')), own(answer)],
  },
  TGI: {
    thought: (piece) => ({ reasoning: piece }),
    call: ({ name, pieces }) =>
      [{ name, arguments: '' }, ...pieces.map((piece) => ({ name: null, arguments: piece }))].map((said) => ({
        role: 'assistant',
        tool_calls: { index: 0, id: '', type: 'function', function: said },
      })),
    hasIds: false,
    end: (answer) => [choice({}, reason(answer, 'eos_token')), own(answer)],
  },
  Copilot: {
    thought: (piece) => ({ reasoning_text: piece }),
    call: inPieces(undefined, () => ({})),
    end: (answer) => [{ choices: [{ delta: { content: null }, finish_reason: reason(answer) }], usage: counted(answer) }],
  },
  OpenRouter: {
    thought: (piece) => ({
      role: 'assistant',
      content: '',
      reasoning: piece,
      reasoning_details: [{ type: 'reasoning.text', text: piece, format: 'unknown', index: 0 }],
    }),
    call: inPieces('', () => ({ type: 'function' })),
    end: (answer) => [
      choice({ role: 'assistant', content: '' }, reason(answer), { native_finish_reason: 'x' }),
      { ...choice({ role: 'assistant', content: '' }, reason(answer)), usage: counted(answer, { cost: 0.1 }) },
    ],
  },
  MiniMax: {
    thought: (piece) => ({
      reasoning_content: piece,
      reasoning_details: [{ type: 'reasoning.text', id: 'reasoning-text-1', index: 0, text: piece }],
    }),
    call: inPieces('', () => ({})),
    end: (answer) => {
      const thought = answer.thought.join('');
      const message = {
        role: 'assistant',
        content: answer.text.join(''),
        reasoning_content: thought,
        reasoning_details: [{ type: 'reasoning.text', id: 'reasoning-text-1', index: 0, text: thought }],
        tool_calls: answer.calls.length === 0 ? [null] : answer.calls.map(whole),
      };
      const last = { choices: [{ index: 0, message, finish_reason: reason(answer) }], base_resp: { status_code: 0 } };
      return [
        { ...last, object: 'chat.completion' },
        { choices: null, usage: counted(answer) },
      ];
    },
  },
  'Moonshot, Cloudflare': {
    thought: (piece) => ({ reasoning_content: piece }),
    call: inPieces('', () => ({})),
    end: (answer) => {
      const { cached } = answer.usage;
      const usage = counted(answer, { prompt_tokens_details: null, cached_tokens: cached });
      return [choice({}, reason(answer), { usage }), { response: '', usage: counted(answer, { prompt_tokens_details: null }) }];
    },
  },
};
