/**
 * The reasoning items of one streamed answer, from scalars and from `reasoning_details`. Fragments of one identity accumulate
 * into one item (spec rule 12); separate ones stay separate.
 */
import { grown } from '../canonical/grown.ts';
import { upstreamFault } from '../canonical/error.ts';
import type { CanonicalEvent } from '../canonical/event.ts';
import type { ItemStatus, ReasoningItem } from '../canonical/item.ts';
import type { JsonValue } from '../canonical/json.ts';
import type { Opaque, Owner } from '../canonical/opaque.ts';
import {
  absorb,
  awaitsPayload,
  belongs,
  type Detail,
  type DetailIdentity,
  identityOf,
  opaqueOfDetail,
  withSignedWords,
  readDetail,
  SCALAR_FORM,
} from './details.ts';

interface Open {
  readonly index: number;
  raw: string;
  summary: string;
  /** Undefined for scalar reasoning. */
  readonly identity: DetailIdentity | undefined;
  opaque: Opaque | undefined;
}

/** What an item has said, kept after its end so that a snapshot does not say it again. */
interface Said {
  readonly identity: DetailIdentity;
  readonly text: string;
}

/** Every fragment looks for its item: no answer has this many, and looking through more would be quadratic. */
const MAX_ITEMS = 2048;

export class ReasoningItems {
  readonly #owner: Owner;
  readonly #nextItem: () => number;
  #open: Open[] = [];
  readonly #said: Said[] = [];
  /** Signatures that carry a tool call's id: they belong to that call. */
  readonly #signatures: { readonly id: string; readonly opaque: Opaque; readonly detail: Detail }[] = [];
  /** What comes now is the whole message again, and no piece of it. */
  #snapshot = false;
  /** All scalar text so far. */
  #raw = '';

  constructor(owner: Owner, nextItem: () => number) {
    this.#owner = owner;
    this.#nextItem = nextItem;
  }

  get lastItem(): number | undefined {
    return this.#open.at(-1)?.index;
  }

  beginSnapshot(): void {
    this.#snapshot = true;
  }
  endSnapshot(): void {
    this.#snapshot = false;
  }

  /** True when the fragments hold readable text, so that whatever was being said before them is over. */
  speaks(entries: readonly JsonValue[]): boolean {
    return !this.#snapshot && entries.some((entry) => (readDetail(entry)?.text ?? '') !== '');
  }

  /** What a scalar says: within a snapshot only the suffix that was not said; the display copy of details says nothing. */
  unsaidRaw(piece: string): string {
    if (!this.#snapshot) return piece;
    if (this.#raw === '' && this.#said.length + this.#open.length > 0) return '';
    return piece.startsWith(this.#raw) ? piece.slice(this.#raw.length) : '';
  }

  pushRaw(piece: string, out: CanonicalEvent[]): void {
    const fresh = this.unsaidRaw(piece);
    if (fresh === '') return;
    this.#raw = grown(this.#raw, fresh);
    let open = this.#open.find((item) => item.identity === undefined);
    if (open === undefined) {
      // Something new: what came before it has all that it will get.
      this.#endPaid(out);
      open = this.#start(undefined, out);
    }
    open.raw = grown(open.raw, fresh);
    out.push({ type: 'item.delta', index: open.index, delta: { kind: 'raw', text: fresh } });
  }

  /** One more piece of the scalar that is being said; undefined where it says nothing. */
  extend(piece: string): CanonicalEvent | undefined {
    const open = this.#open.find((item) => item.identity === undefined);
    if (open === undefined || piece === '') return undefined;
    this.#raw = grown(this.#raw, piece);
    open.raw = grown(open.raw, piece);
    return { type: 'item.delta', index: open.index, delta: { kind: 'raw', text: piece } };
  }

  pushScalarOpaque(value: string, out: CanonicalEvent[]): void {
    const open = this.#open.find((item) => item.identity === undefined) ?? this.#start(undefined, out);
    const before = open.opaque?.value ?? '';
    if (this.#snapshot && before !== '') return;
    open.opaque = { owner: this.#owner, value: before + value, form: SCALAR_FORM };
  }

  pushDetails(entries: readonly JsonValue[], out: CanonicalEvent[]): void {
    for (const entry of entries) {
      const detail = readDetail(entry);
      if (detail === undefined) continue;
      if (detail.kind === 'other') this.#pushNative(detail, out);
      else this.#pushDetail(detail, out);
    }
  }

  /** Something else is being said: items that need nothing more end. A scalar payload may always go on. */
  pause(out: CanonicalEvent[]): void {
    const kept: Open[] = [];
    for (const open of this.#open) {
      const isPartial = open.opaque?.form === SCALAR_FORM;
      if (isPartial || (open.opaque === undefined && awaitsPayload(open.identity?.format))) kept.push(open);
      else this.#end(open, 'completed', out);
    }
    this.#open = kept;
  }

  /** Ends every item; `sign` takes the signatures of tool calls and says whether it knows the call. */
  close(cut: number | undefined, sign: (id: string, opaque: Opaque) => boolean, out: CanonicalEvent[]): void {
    for (const { id, opaque, detail } of this.#signatures) {
      if (sign(id, opaque)) continue;
      const open = this.#start(identityOf(detail), out);
      open.opaque = opaque;
    }
    this.#signatures.length = 0;
    for (const open of this.#open) this.#end(open, open.index === cut ? 'incomplete' : 'completed', out);
    this.#open = [];
  }

  #pushDetail(detail: Detail, out: CanonicalEvent[]): void {
    if (detail.kind === 'encrypted' && detail.id !== undefined && detail.format?.startsWith('google') === true) {
      if (detail.payload === undefined || this.#signatures.some(({ id }) => id === detail.id)) return;
      if (this.#signatures.length >= MAX_ITEMS)
        throw upstreamFault('malformed_event', `The upstream sent more than ${MAX_ITEMS} signatures.`);
      this.#signatures.push({ id: detail.id, opaque: opaqueOfDetail(detail, detail.payload, this.#owner), detail });
      return;
    }
    if (detail.text === '' && detail.payload === undefined) return;
    let open = this.#open.find((item) => item.identity !== undefined && belongs(item.identity, detail));
    const fresh = this.#unsaid(detail, open);
    if (fresh === '' && (detail.payload === undefined || (open === undefined && this.#knows(detail)))) return;
    if (open === undefined) {
      // A new identity: what came before it has all that it will get.
      this.#endPaid(out);
      open = this.#start(identityOf(detail), out);
    }
    if (open.identity !== undefined) absorb(open.identity, detail);
    if (fresh !== '') this.#extend(open, faceOf(detail), fresh, out);
    if (detail.payload !== undefined) open.opaque ??= opaqueOfDetail(detail, detail.payload, this.#owner);
  }

  #extend(open: Open, face: 'raw' | 'summary', fresh: string, out: CanonicalEvent[]): void {
    open[face] = grown(open[face], fresh);
    const delta = face === 'raw' ? { kind: face, text: fresh } : { kind: face, part: 0, text: fresh };
    out.push({ type: 'item.delta', index: open.index, delta });
  }

  /** Within a snapshot only the suffix that was not said; otherwise the whole fragment. */
  #unsaid(detail: Detail, open: Open | undefined): string {
    if (!this.#snapshot || detail.text === '') return detail.text;
    const ended = this.#said.filter((said) => belongs(said.identity, detail)).map(({ text }) => text);
    const going = open?.[faceOf(detail)];
    // One entry may say what was parted by something else (MiniMax).
    const all = ended.join('') + (going ?? '');
    if (detail.text.startsWith(all)) return detail.text.slice(all.length);
    const known = going ?? ended[0];
    return known !== undefined && detail.text.startsWith(known) ? detail.text.slice(known.length) : '';
  }

  /** The payload was said before: by what has ended, or by what stands beside it in a whole answer. */
  #knows({ payload }: Detail): boolean {
    const isSame = ({ identity }: { readonly identity: DetailIdentity | undefined }): boolean =>
      identity?.payload !== undefined && identity.payload === payload;
    return this.#said.some(isSame) || this.#open.some(isSame);
  }

  /** Ends what is signed, and scalar text: a payload of its own follows only fragments with an identity. */
  #endPaid(out: CanonicalEvent[]): void {
    const kept: Open[] = [];
    for (const open of this.#open) {
      const isDone = open.opaque === undefined ? open.identity === undefined : open.opaque.form !== SCALAR_FORM;
      if (isDone) this.#end(open, 'completed', out);
      else kept.push(open);
    }
    this.#open = kept;
  }

  #start(identity: DetailIdentity | undefined, out: CanonicalEvent[]): Open {
    if (this.#open.length + this.#said.length >= MAX_ITEMS)
      throw upstreamFault('malformed_event', `The upstream sent more than ${MAX_ITEMS} reasoning items.`);
    const open: Open = { index: this.#nextItem(), raw: '', summary: '', identity, opaque: undefined };
    this.#open.push(open);
    out.push({ type: 'item.start', index: open.index, head: { kind: 'reasoning' } });
    return open;
  }

  #end(open: Open, status: ItemStatus, out: CanonicalEvent[]): void {
    if (open.identity !== undefined) this.#said.push({ identity: open.identity, text: open.raw + open.summary });
    const item: ReasoningItem = {
      kind: 'reasoning',
      ...(open.raw === '' ? {} : { raw: open.raw }),
      ...(open.summary === '' ? {} : { summary: [open.summary] }),
      ...(open.opaque === undefined ? {} : { opaque: withSignedWords(open.opaque, open.raw) }),
    };
    out.push({ type: 'item.end', index: open.index, item, status });
  }

  #pushNative(detail: Detail, out: CanonicalEvent[]): void {
    const index = this.#nextItem();
    out.push({ type: 'item.start', index, head: { kind: 'native', dialect: 'chat' } });
    out.push({ type: 'item.end', index, item: { kind: 'native', dialect: 'chat', body: detail.body }, status: 'completed' });
  }
}

function faceOf({ kind }: Detail): 'raw' | 'summary' {
  return kind === 'text' ? 'raw' : 'summary';
}
