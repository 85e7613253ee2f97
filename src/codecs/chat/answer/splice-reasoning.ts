/**
 * The reasoning of a stream that goes to a client of the same dialect. Clients join the pieces of its deltas, so what the last
 * chunk repeats is taken out, and what only a final message holds becomes a delta of its own, in the members in which it stands
 * there (spec rule 12).
 */
import type { CanonicalEvent } from '../../canonical/event.ts';
import { isObject, type JsonObject, type JsonValue } from '../../canonical/json.ts';
import type { ResponseContext } from '../../codec.ts';
import type { JsonEdit } from '../../json/edit.ts';
import type { JsonPath } from '../../json/text.ts';
import { type Detail, readDetail } from '../details.ts';
import { sealedPayload } from '../opaque.ts';
import { nonEmptyString } from '../wire.ts';

const SCALARS = ['reasoning_content', 'reasoning', 'reasoning_text'] as const;

export class NativeReasoning {
  /** What the deltas signed or encrypted so far. */
  readonly #payloads = new Set<string>();

  /**
   * Takes what was written before out of a delta; `fresh` loses what is left, in order: the text that the decoder found new in
   * the chunk.
   */
  editDelta(delta: JsonObject, path: JsonPath, fresh: string[], edits: JsonEdit[]): void {
    const details = detailsIn(delta);
    for (const { payload } of details.values()) if (payload !== undefined) this.#payloads.add(payload);
    if (![...details.values()].some(({ text }) => text !== '')) {
      if (SCALARS.some((name) => nonEmptyString(delta[name]) !== undefined)) fresh.shift();
      return;
    }
    let isCut = false;
    let joined = '';
    for (const [at, detail] of details) {
      const text = take(detail, fresh);
      joined += text;
      if (text === detail.text) continue;
      isCut = true;
      edits.push({ path: [...path, 'reasoning_details', at, detail.kind], value: JSON.stringify(text) });
    }
    if (!isCut) return;
    // The scalar beside readable details is a copy of them for display.
    for (const name of SCALARS)
      if (nonEmptyString(delta[name]) !== undefined) edits.push({ path: [...path, name], value: JSON.stringify(joined) });
  }

  /** The delta for what only the message holds; undefined where it holds nothing else. */
  onlyIn(message: JsonObject, fresh: string[], context: ResponseContext): JsonObject | undefined {
    const entries: JsonObject[] = [];
    let joined = '';
    for (const detail of detailsIn(message).values()) {
      const text = take(detail, fresh);
      const payload =
        detail.payload === undefined || this.#payloads.has(detail.payload) ? undefined : sealedPayload(detail, context);
      if (text === '' && payload === undefined) continue;
      joined += text;
      const { signature: _, data: __, ...entry } = detail.body;
      entries.push({ ...entry, ...(detail.kind === 'encrypted' ? {} : { [detail.kind]: text }), ...payload });
    }
    const scalar = SCALARS.find((name) => nonEmptyString(message[name]) !== undefined);
    const rest = joined === '' ? fresh.join('') : joined;
    const hasScalar = rest !== '' && (joined === '' || scalar !== undefined);
    if (!hasScalar && entries.length === 0) return undefined;
    return {
      ...(hasScalar ? { [scalar ?? SCALARS[0]]: rest } : {}),
      ...(entries.length === 0 ? {} : { reasoning_details: entries }),
    };
  }
}

/** The readable reasoning that the decoder found in a chunk, piece by piece. */
export function freshReasoning(events: readonly CanonicalEvent[]): string[] {
  return events.flatMap((event) =>
    event.type === 'item.delta' && (event.delta.kind === 'raw' || event.delta.kind === 'summary') ? [event.delta.text] : [],
  );
}

/** By their place in the list. */
function detailsIn({ reasoning_details: details }: JsonObject): Map<number, Detail> {
  const found = new Map<number, Detail>();
  if (!Array.isArray(details)) return found;
  for (const [at, entry] of (details as readonly JsonValue[]).entries()) {
    const detail = isObject(entry) ? readDetail(entry) : undefined;
    if (detail !== undefined && detail.kind !== 'other') found.set(at, detail);
  }
  return found;
}

/** The part of an entry's text that is new: the decoder emitted it in one piece, in the order of the entries. */
function take({ text }: Detail, fresh: string[]): string {
  const [next] = fresh;
  if (next === undefined || text === '' || !text.endsWith(next)) return '';
  fresh.shift();
  return next;
}
