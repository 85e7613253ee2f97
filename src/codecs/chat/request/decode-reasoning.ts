/** The reasoning of assistant messages in a chat request, and the signatures of other items that stand among its details. */
import { invalid } from '../../canonical/error.ts';
import type { Item, ReasoningItem } from '../../canonical/item.ts';
import { isObject, type JsonObject, type JsonValue } from '../../canonical/json.ts';
import { isEnvelope, type Opaque } from '../../canonical/opaque.ts';
import type { RequestContext } from '../../codec.ts';
import { arrayAt, optionalString, present } from '../../requests/members.ts';
import type { Steps } from '../../steps.ts';
import {
  type Detail,
  type DetailIdentity,
  detailsOfBlocks,
  identityOf,
  isSameItem,
  mergeIdentity,
  opaqueOfDetail,
  readDetail,
  SCALAR_FORM,
} from '../details.ts';
import { isImageSignatureId, type SignedText, textRangeOf } from '../opaque.ts';

/**
 * How many groups a fragment is compared with. Fragments of one item stand near each other, and comparing all would take
 * quadratic time.
 */
const MAX_OPEN_GROUPS = 256;

/**
 * The reasoning of one assistant message. Details win over scalars. `reasoning` is a copy for display and never raw text.
 * `reasoning_content` is the text of the first item without a summary, or of the only item where the gateway itself wrote both.
 */
export class HistoryReasoning {
  /** Signatures of texts that stand among the details. */
  readonly signedTexts: SignedText[] = [];
  readonly #groups: Group[] = [];
  readonly #natives: Item[] = [];
  /** Signatures of calls and images, by the id of their entry. */
  readonly #signatures = new Map<string, Opaque>();
  readonly #raw: string | undefined;
  readonly #display: string | undefined;
  readonly #scalar: Opaque | undefined;
  readonly #facts: { readonly at: string; readonly turn: number };

  private constructor(message: JsonObject, at: string, turn: number, context: RequestContext) {
    this.#facts = { at: `${at}.reasoning_details`, turn };
    this.#raw = optionalString(message, 'reasoning_content', at);
    this.#display = typeof message['reasoning'] === 'string' ? message['reasoning'] : undefined;
    this.#scalar = readOpaque(optionalString(message, 'reasoning_opaque', at), context, (value) => ({
      owner: { client: 'chat' },
      value,
      form: SCALAR_FORM,
    }));
  }

  /** Of the message at `at`, the one of this ordinal. */
  static *read(message: JsonObject, at: string, turn: number, context: RequestContext): Steps<HistoryReasoning> {
    const reasoning = new HistoryReasoning(message, at, turn, context);
    const { thinking_blocks: blocks } = message;
    const details = Array.isArray(blocks) && blocks.length > 0 ? detailsOfBlocks(blocks) : message['reasoning_details'];
    if (!present(details)) return reasoning;
    const callIds = callIdsOf(message);
    for (const entry of arrayAt(details, `${at}.reasoning_details`)) {
      // Clients that store entries by index leave null where an index was not used.
      if (present(entry)) reasoning.#add(entry, callIds, context);
      // It may have opened a value of megabytes.
      yield;
    }
    return reasoning;
  }

  signatureOf(id: string): Opaque | undefined {
    return this.#signatures.get(id);
  }

  items(): Item[] {
    const kept = this.#groups.filter((group) => !group.isLost);
    const items: ReasoningItem[] = kept.map((group) => ({
      kind: 'reasoning',
      ...(group.raw.text === '' ? {} : { raw: group.raw.text }),
      ...(group.summary.text === '' ? {} : { summary: [group.summary.text] }),
      ...(group.opaque === undefined ? {} : { opaque: group.opaque }),
      ...(group.opaque?.itemId === undefined ? {} : { id: group.opaque.itemId }),
      ...this.#facts,
    }));
    if (this.#raw !== undefined) this.#addRaw(this.#raw, items);
    if (this.#scalar !== undefined) this.#addScalar(this.#scalar, items);
    if (items.length === 0 && this.#groups.length === 0 && this.#display !== undefined && this.#display !== '') {
      items.push({ kind: 'reasoning', summary: [this.#display], ...this.#facts });
    }
    return [...items, ...this.#natives];
  }

  #addRaw(raw: string, items: ReasoningItem[]): void {
    if (items.some((item) => item.raw !== undefined)) return;
    const [only] = items;
    const isOurs = items.length === 1 && only?.opaque?.sealed !== undefined;
    const index = isOurs ? 0 : items.findIndex((item) => item.summary === undefined);
    const known = items[index];
    if (known !== undefined) items[index] = { ...known, raw };
    else items.unshift({ kind: 'reasoning', raw, ...this.#facts });
  }

  #addScalar(opaque: Opaque, items: ReasoningItem[]): void {
    const [first] = items;
    if (first !== undefined && first.opaque === undefined) items[0] = { ...first, opaque };
    else items.unshift({ kind: 'reasoning', opaque, ...this.#facts });
  }

  #add(entry: JsonValue, callIds: ReadonlySet<string>, context: RequestContext): void {
    const detail = readDetail(entry);
    if (detail === undefined) throw invalid(this.#facts.at, `'${this.#facts.at}' must hold objects.`);
    if (detail.kind === 'other') {
      this.#natives.push({ kind: 'native', dialect: 'chat', role: 'assistant', body: detail.body, ...this.#facts });
      return;
    }
    const opaque = readOpaque(detail.payload, context, (value) => opaqueOfDetail(detail, value, { client: 'chat' }));
    const range = detail.id === undefined ? undefined : textRangeOf(detail.id);
    if (range !== undefined) {
      if (opaque !== undefined) this.signedTexts.push({ ...range, opaque });
      return;
    }
    if (detail.id !== undefined && (callIds.has(detail.id) || isImageSignatureId(detail.id))) {
      if (opaque !== undefined) this.#signatures.set(detail.id, opaque);
      return;
    }
    const group = this.#groupOf(detail);
    const text = detail.kind === 'text' ? group.raw : group.summary;
    text.append(detail.kind === 'encrypted' ? summaryBeside(detail) : detail.text);
    if (detail.payload !== undefined) {
      text.commit();
      if (opaque === undefined) group.isLost = true;
    }
    group.opaque ??= opaque;
  }

  #groupOf(detail: Detail): Group {
    const known = this.#groups.slice(-MAX_OPEN_GROUPS).findLast(({ identity }) => isSameItem(identity, detail));
    if (known !== undefined) {
      mergeIdentity(known.identity, detail);
      return known;
    }
    const identity = identityOf(detail);
    const group: Group = { identity, raw: new FragmentedText(), summary: new FragmentedText(), opaque: undefined, isLost: false };
    this.#groups.push(group);
    return group;
  }
}

/** The entries of one reasoning item. */
interface Group {
  readonly identity: DetailIdentity;
  readonly raw: FragmentedText;
  readonly summary: FragmentedText;
  opaque: Opaque | undefined;
  /** Its envelope cannot be opened, so the whole item is left out of the request. */
  isLost: boolean;
}

/**
 * A text in fragments that are followed by a payload. Some clients (OpenRouter's provider for AI SDK 5) send the entries of a
 * message once for each part of it: fragments that repeat the whole text before the payload comes once more are ignored.
 */
class FragmentedText {
  #committed = '';
  #pending = '';

  append(fragment: string): void {
    this.#pending += fragment;
  }

  /** The payload has come: the fragments since the last one are part of the text, unless they repeat it. */
  commit(): void {
    if (this.#pending !== this.#committed) this.#committed += this.#pending;
    this.#pending = '';
  }

  get text(): string {
    return this.#committed + this.#pending;
  }
}

/** Clients that merge entries of one index (the official Python client) put the summary into the entry of its payload. */
function summaryBeside({ body: { summary } }: Detail): string {
  return typeof summary === 'string' ? summary : '';
}

function callIdsOf(message: JsonObject): ReadonlySet<string> {
  const calls = Array.isArray(message['tool_calls']) ? message['tool_calls'] : [];
  return new Set(calls.flatMap((call) => (isObject(call) && typeof call['id'] === 'string' ? [call['id']] : [])));
}

/** Opens an envelope, or drops it where it cannot be opened. Any other value is the vendor's own, which `raw` makes opaque. */
export function readOpaque(
  value: string | undefined,
  context: RequestContext,
  raw: (value: string) => Opaque,
): Opaque | undefined {
  if (value === undefined || value === '') return undefined;
  if (!isEnvelope(value)) return raw(value);
  const opened = context.open(value);
  return opened === undefined ? undefined : { ...opened, sealed: value };
}
