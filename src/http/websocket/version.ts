/** Which of the two WebSocket dialects a client speaks (design: "v1 or v2 WebSocket client"). */
import type { IncomingHttpHeaders } from 'node:http';

/** `unannounced`: treated as v2 until the client sends what only v1 clients send. */
export type Version = 'v1' | 'v2' | 'unannounced';

const FIRST_V2_DATE = '2026-02-06';
const V1_DATE = '2026-02-04';

/** The header may name several betas; one of v2 wins. */
export function announcedVersion(headers: IncomingHttpHeaders): Version {
  const betas = String(headers['openai-beta'] ?? '').split(',');
  let version: Version = 'unannounced';
  for (const beta of betas) {
    const date = /^\s*responses_websockets=(\d{4}-\d{2}-\d{2})\s*$/.exec(beta)?.[1];
    if (date === undefined) continue;
    if (date >= FIRST_V2_DATE) return 'v2';
    if (date === V1_DATE) version = 'v1';
  }
  return version;
}
