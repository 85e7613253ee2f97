/** What a client says in members that no decoder reads: an upstream of another dialect never hears of it, which has to be said. */
import type { CanonicalRequest } from './canonical/request.ts';
import { present } from './request-members.ts';

/** Whether the loss `unknown members` happens to this request at an upstream of another dialect. */
export function hasUnreadMembers({ json, reads }: CanonicalRequest): boolean {
  return Object.keys(json).some((key) => !reads.has(key) && present(json[key]));
}
