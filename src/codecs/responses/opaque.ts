/**
 * The `form` of an opaque value of this dialect: the member that held it, the format beside it, and the raw text of its item.
 * Clients of other protocols have no members for the first two, and messages clients send raw text back as a summary, so all
 * three stay with the value.
 */
import { isObject, tryJson } from '../canonical/json.ts';
import { type OPAQUE_MEMBERS, nonEmptyString } from './wire.ts';

export interface OpaqueForm {
  readonly member: (typeof OPAQUE_MEMBERS)[number];
  readonly format: string | undefined;
  readonly raw: string | undefined;
}

/** One word where that is enough: `signature`, or the format of an `encrypted_content`. Otherwise JSON. */
export function writeForm({ member, format, raw }: OpaqueForm): string | undefined {
  if (raw === undefined && member === 'encrypted_content') return format;
  if (raw === undefined && format === undefined) return member;
  return JSON.stringify({ member, format, raw });
}

export function readForm(form: string | undefined): OpaqueForm {
  const json = form?.startsWith('{') === true ? tryJson(form) : undefined;
  if (!isObject(json)) {
    if (form === 'signature') return { member: form, format: undefined, raw: undefined };
    return { member: 'encrypted_content', format: form, raw: undefined };
  }
  const member = json['member'] === 'signature' ? 'signature' : 'encrypted_content';
  return { member, format: nonEmptyString(json, 'format'), raw: nonEmptyString(json, 'raw') };
}
