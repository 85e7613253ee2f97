/**
 * Why an operator's request cannot be done. Thrown by the verbs; the command line and the admin API each print it in their own
 * names.
 */

/** How a member of the request is called where the refusal is printed: `--limit-total`, or `limits.total`. */
export type NameOf = (member: string) => string;

const PLAIN: NameOf = (member) => member;

/** What a refusal is about: input that makes no sense, something that does not exist, or a state in which it cannot be done. */
export type RefusalKind = 'invalid' | 'unknown' | 'conflict' | 'unavailable';

/** A refusal of the store or of the gateway. Exit code 1; 400, 404, 409 or 503. */
export class RefusedError extends Error {
  override readonly name: string = 'RefusedError';
  readonly kind: RefusalKind;
  /** For programs: `unknown_key`, `cause_reused`. */
  readonly code: string;
  /** The member of the request that it is about. */
  readonly member: string | undefined;
  readonly #text: (name: NameOf) => string;

  /** `text` is given how members are called here. */
  constructor(text: string | ((name: NameOf) => string), kind: RefusalKind = 'conflict', code: string = kind) {
    const write = typeof text === 'string' ? () => text : text;
    const named: string[] = [];
    super(
      write((member) => {
        named.push(member);
        return PLAIN(member);
      }),
    );
    this.#text = write;
    this.kind = kind;
    this.code = code;
    this.member = named[0];
  }

  /** The message with the members as `name` calls them. */
  in(name: NameOf): string {
    return this.#text(name);
  }
}

/** The operator's mistake, found before anything was tried. Exit code 2; 400. */
export class InputError extends RefusedError {
  override readonly name: string = 'InputError';

  constructor(text: string | ((name: NameOf) => string)) {
    super(text, 'invalid', 'invalid_request');
  }
}

/** The store's refusals, by what they are about; every other one is a state in which it cannot be done. */
const KINDS: ReadonlyMap<string, RefusalKind> = new Map([
  ['invalid', 'invalid'],
  ['unknown_account', 'unknown'],
  ['unknown_key', 'unknown'],
  ['not_found', 'unknown'],
]);

/** A refusal that the store returned. `members` names the member for a field that has another name there. */
export function refusedBy(refusal: { readonly reason: string }, members: Readonly<Record<string, string>> = {}): RefusedError {
  const { reason } = refusal;
  const kind = KINDS.get(reason) ?? 'conflict';
  if (!('field' in refusal && 'message' in refusal)) return new RefusedError(reason.replaceAll('_', ' '), kind, reason);
  const [, field = '', index = ''] = /^(.*?)(\[\d+\])?$/.exec(String(refusal.field)) ?? [];
  return new RefusedError((name) => `${name(members[field] ?? field)}${index} ${String(refusal.message)}`, kind, reason);
}
