/**
 * Opaque values as a vendor issues them: encrypted reasoning, signatures, compaction. The simulator recognises its own and
 * nothing else, so that a gateway that loses, mixes up or changes one is found out. Not encryption: the payload is only signed.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';

/** What an issued value stands for. A `draft` is the early value of `output_item.added`, which is not accepted back. */
export type SealKind = 'reasoning' | 'draft' | 'compaction' | 'thinking' | 'redacted' | 'call' | 'text';

export interface Seals {
  /** `bound` is what the value belongs to (the thinking text, the called function); `tag` makes values of one binding differ. */
  issue(kind: SealKind, bound: string, tag: string): string;
  /** Whether this simulator issued the value for this kind and binding. */
  accepts(kind: SealKind, bound: string, value: string): boolean;
}

const MAC_BYTES = 32;

export function createSeals(secret: Uint8Array): Seals {
  const mac = (kind: SealKind, bound: string, filler: Uint8Array) =>
    createHmac('sha256', secret).update(`${kind}\n${bound}\n`).update(filler).digest();
  return {
    issue(kind, bound, tag) {
      // Vendors' values are long; the filler keeps them so and carries the tag's digest.
      const filler = createHmac('sha512', secret).update(tag).digest();
      return dress(kind, Buffer.concat([filler, mac(kind, bound, filler)]));
    },
    accepts(kind, bound, value) {
      const bytes = undress(kind, value);
      if (bytes === undefined || bytes.length <= MAC_BYTES) return false;
      const filler = bytes.subarray(0, -MAC_BYTES);
      return timingSafeEqual(mac(kind, bound, filler), bytes.subarray(-MAC_BYTES));
    },
  };
}

const isResponses = (kind: SealKind) => kind === 'reasoning' || kind === 'draft' || kind === 'compaction';

function dress(kind: SealKind, bytes: Buffer): string {
  return isResponses(kind) ? `gAAAAA${bytes.toString('base64url')}==` : bytes.toString('base64');
}

function undress(kind: SealKind, value: string): Buffer | undefined {
  if (!isResponses(kind)) {
    const bytes = Buffer.from(value, 'base64');
    return bytes.toString('base64') === value ? bytes : undefined;
  }
  if (!value.startsWith('gAAAAA') || !value.endsWith('==')) return undefined;
  const inner = value.slice('gAAAAA'.length, -2);
  const bytes = Buffer.from(inner, 'base64url');
  return bytes.toString('base64url') === inner ? bytes : undefined;
}
