/** `usageMetadata`: cumulative, repeated by every chunk of a stream, with counters missing until they are known. */
import type { JsonObject, JsonValue } from '../canonical/json.ts';
import { isObject } from '../canonical/json.ts';
import { isPlaceholder, type Usage } from '../canonical/usage.ts';
import { array, malformed, text } from './read-chunk.ts';

const COUNTERS = [
  'promptTokenCount',
  'candidatesTokenCount',
  'thoughtsTokenCount',
  'toolUsePromptTokenCount',
  'cachedContentTokenCount',
  'totalTokenCount',
] as const;
type Counter = (typeof COUNTERS)[number];

/** Folds the reports of one answer; the last value of each counter counts. */
export class UsageReports {
  readonly #counts = new Map<Counter, number>();
  #image: { input?: number; output?: number } = {};
  #audio: { input?: number; output?: number } = {};
  #serviceTier: string | undefined;
  #reported = '';

  /** Throws `malformed_event` for a counter that is no count. */
  read(metadata: JsonObject): void {
    for (const name of COUNTERS) {
      const count = readCount(metadata[name], name);
      if (count !== undefined) this.#counts.set(name, count);
    }
    this.#image = { ...this.#image, ...modality(metadata, 'IMAGE') };
    this.#audio = { ...this.#audio, ...modality(metadata, 'AUDIO') };
    this.#serviceTier = text(metadata, 'serviceTier') ?? this.#serviceTier;
  }

  /** What is known now, when it is more than placeholders and differs from what was taken before. */
  take(): Usage | undefined {
    const usage = this.#usage();
    if (isPlaceholder(usage)) return undefined;
    const key = JSON.stringify(usage);
    if (key === this.#reported) return undefined;
    this.#reported = key;
    return usage;
  }

  #usage(): Usage {
    const count = (name: Counter) => this.#counts.get(name);
    const prompt = count('promptTokenCount');
    const toolPrompt = count('toolUsePromptTokenCount');
    const cached = count('cachedContentTokenCount');
    const thoughts = count('thoughtsTokenCount');
    const output = this.#output(prompt ?? 0, toolPrompt ?? 0, thoughts);
    const isInputKnown = prompt !== undefined || toolPrompt !== undefined;
    return {
      ...(isInputKnown ? { input: Math.max(0, (prompt ?? 0) + (toolPrompt ?? 0) - (cached ?? 0)) } : {}),
      ...(cached === undefined ? {} : { cacheRead: cached }),
      ...(output === undefined ? {} : { output }),
      ...(thoughts === undefined ? {} : { reasoning: thoughts }),
      ...(this.#image.input === undefined ? {} : { imageInput: this.#image.input }),
      ...(this.#image.output === undefined ? {} : { imageOutput: this.#image.output }),
      ...(this.#audio.input === undefined ? {} : { audioInput: this.#audio.input }),
      ...(this.#audio.output === undefined ? {} : { audioOutput: this.#audio.output }),
      ...(this.#serviceTier === undefined ? {} : { serviceTier: this.#serviceTier }),
    };
  }

  /** Candidates exclude thoughts. Where they are missing the total says what is left for them. */
  #output(prompt: number, toolPrompt: number, thoughts: number | undefined): number | undefined {
    const candidates = this.#counts.get('candidatesTokenCount');
    if (candidates !== undefined) return sum(candidates, thoughts ?? 0);
    const total = this.#counts.get('totalTokenCount');
    const rest = total === undefined ? 0 : total - prompt - toolPrompt;
    return rest > 0 || thoughts !== undefined ? Math.max(rest, thoughts ?? 0) : undefined;
  }
}

function sum(left: number, right: number): number {
  const result = left + right;
  if (!Number.isSafeInteger(result)) throw malformed('usageMetadata');
  return result;
}

/** A count, also when spelled as a string (the protocol's 64-bit integers are). */
function readCount(value: JsonValue | undefined, name: string): number | undefined {
  if (value === undefined || value === null) return undefined;
  const count = typeof value === 'string' && /^\d+$/.test(value) ? Number(value) : value;
  if (typeof count !== 'number' || !Number.isSafeInteger(count) || count < 0) throw malformed(name);
  return count;
}

function modality(metadata: JsonObject, word: string): { input?: number; output?: number } {
  const input = shareOf(metadata, 'promptTokensDetails', word);
  const output = shareOf(metadata, 'candidatesTokensDetails', word);
  return { ...(input === undefined ? {} : { input }), ...(output === undefined ? {} : { output }) };
}

function shareOf(metadata: JsonObject, list: string, word: string): number | undefined {
  for (const detail of array(metadata, list)) {
    if (isObject(detail) && detail['modality'] === word) return readCount(detail['tokenCount'], 'tokenCount');
  }
  return undefined;
}
