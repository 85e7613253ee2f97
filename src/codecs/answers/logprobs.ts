/**
 * Token logprobs between the canonical model and the entry shape that chat and responses share:
 * `{token, logprob, bytes, top_logprobs: [{token, logprob, bytes}]}`. Does not know where a dialect puts them.
 */
import { upstreamFault } from '../canonical/error.ts';
import type { Logprobs, TokenLogprob } from '../canonical/item.ts';
import { readBase64 } from '../media.ts';
import { isObject, type JsonArray, type JsonObject, type JsonValue } from '../canonical/json.ts';

/** Reads an array of entries; undefined for null, absent and empty. Throws `malformed_event` for anything else. */
export function readLogprobs(value: JsonValue | undefined): Logprobs | undefined {
  if (value === undefined || value === null) return undefined;
  if (!Array.isArray(value)) throw malformed();
  if (value.length === 0) return undefined;
  return value.map((entry: JsonValue): TokenLogprob => {
    const head = readHead(entry);
    const top = isObject(entry) ? entry['top_logprobs'] : undefined;
    if (top === undefined || top === null) return head;
    if (!Array.isArray(top)) throw malformed();
    return { ...head, top: top.map(readAlternative) };
  });
}

interface Head {
  readonly token: string;
  readonly logprob: number;
  readonly bytes?: readonly number[] | null;
}

/** As it is, where that is how it is kept: an answer of ten thousand tokens has two hundred thousand of them. */
function readAlternative(entry: JsonValue): Head {
  return isObject(entry) && isHead(entry) ? entry : readHead(entry);
}

function isHead(entry: JsonObject): entry is JsonObject & Head {
  const { token, logprob, bytes } = entry;
  if (typeof token !== 'string' || typeof logprob !== 'number') return false;
  return bytes === undefined || bytes === null || isBytes(bytes);
}

function readHead(entry: JsonValue): Head {
  if (!isObject(entry)) throw malformed();
  const { token, logprob, bytes } = entry;
  if (typeof token !== 'string' || typeof logprob !== 'number') throw malformed();
  if (bytes === undefined) return { token, logprob };
  if (bytes === null) return { token, logprob, bytes };
  if (typeof bytes === 'string') return { token, logprob, bytes: bytesOfBase64(bytes) };
  if (!isBytes(bytes)) throw malformed();
  return { token, logprob, bytes };
}

/** Servers written in Go (Novita) write a list of bytes in base64. */
function bytesOfBase64(value: string): readonly number[] {
  const payload = readBase64(value);
  if (payload === undefined) throw malformed();
  return [...Buffer.from(payload, 'base64')];
}

function isBytes(value: JsonValue): value is JsonArray & readonly number[] {
  if (!Array.isArray(value)) return false;
  for (const byte of value) if (typeof byte !== 'number' || !Number.isInteger(byte) || byte < 0 || byte > 255) return false;
  return true;
}

function malformed(): Error {
  return upstreamFault('malformed_event', 'The upstream sent malformed logprobs.');
}

/** The entries as chat and responses write them. Missing bytes are null. */
export function writeLogprobs(logprobs: Logprobs): JsonObject[] {
  return logprobs.map((entry) => ({ ...writeHead(entry), top_logprobs: (entry.top ?? []).map(writeHead) }));
}

function writeHead(entry: Head): JsonObject {
  return { token: entry.token, logprob: entry.logprob, bytes: entry.bytes ?? null };
}

/** True where `written` is what {@link writeLogprobs} makes of them. */
export function areWritten(logprobs: Logprobs, written: readonly JsonObject[]): boolean {
  return (
    logprobs.length === written.length &&
    logprobs.every((entry, at) => {
      const { token, logprob, top_logprobs: top } = written[at] ?? {};
      return entry.token === token && entry.logprob === logprob && Array.isArray(top) && top.length === (entry.top?.length ?? 0);
    })
  );
}

/** What is left of them behind `written`; nothing where they do not begin with those. */
export function restOf(logprobs: Logprobs, written: Logprobs): Logprobs {
  const isPrefix = written.every(({ token, logprob }, at) => {
    const entry = logprobs[at];
    return entry?.token === token && entry.logprob === logprob;
  });
  return isPrefix ? logprobs.slice(written.length) : [];
}

/** Special tokens that may follow a text, such as the end-of-sequence token. */
const MAX_SPECIAL_TOKENS = 2;

/** The last run of tokens that spells `text` exactly, ignoring special tokens behind it (vLLM); undefined where there is none. */
export function runSpelling(text: string, logprobs: Logprobs): Logprobs | undefined {
  for (let ignored = 0; ignored <= MAX_SPECIAL_TOKENS && ignored < logprobs.length; ignored++) {
    const end = logprobs.length - ignored;
    let start = end;
    for (let left = Buffer.byteLength(text); left > 0 && start > 0; ) left -= sizeOf(logprobs[--start]);
    const run = logprobsOf(text, logprobs.slice(start, end));
    if (run !== undefined) return run;
  }
  return undefined;
}

function sizeOf(entry: TokenLogprob | undefined): number {
  return entry?.bytes?.length ?? Buffer.byteLength(entry?.token ?? '');
}

/**
 * The logprobs, if their tokens spell `text` exactly; undefined otherwise (spec rule 7). A token may be a piece of a character,
 * so where the tokens do not match, their bytes decide.
 */
export function logprobsOf(text: string, logprobs: Logprobs | undefined): Logprobs | undefined {
  if (logprobs === undefined || logprobs.length === 0) return undefined;
  let joined = '';
  for (const entry of logprobs) joined += entry.token;
  if (joined === text) return logprobs;
  const bytes: number[] = [];
  for (const entry of logprobs) {
    if (entry.bytes === undefined || entry.bytes === null) return undefined;
    for (const byte of entry.bytes) bytes.push(byte);
  }
  return Buffer.from(bytes).equals(Buffer.from(text)) ? logprobs : undefined;
}
