/**
 * The faults, abuses and incidents that a gateway must stand, by id: `F1` to `F47`, and `V1` to `V16` for what happened to
 * others. A test says which it exercises at the beginning of its title (`F2, F3: …`); what has no test has a reason.
 * docs/reliability.md is printed from here.
 */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

interface Row {
  readonly about: string;
  /** Why no test can name it, or what its tests leave out. */
  readonly reason?: string;
}

export const FAULTS: Readonly<Record<string, Row>> = {
  F1: { about: 'an upstream resets before its headers' },
  F2: { about: 'a reset or an end in mid-stream: inside a character, inside `data:`, behind a CR' },
  F3: { about: 'an end without a terminal, `[DONE]` alone, a finish without `[DONE]`' },
  F4: { about: 'stalls in every phase, comments for ever' },
  F5: { about: 'half-close, an answer before the body was read' },
  F6: { about: 'garbage: HTML, JSON for a stream and a stream for JSON, wrong types, BOM, CR, one byte a packet' },
  F7: { about: 'an event or a body without end' },
  F8: {
    about: 'compressed unasked, under a wrong name',
    reason:
      'streams are refused and never inflated, whole answers up to `limits.answer_bytes` and words of an error up to 256 KiB',
  },
  F9: { about: 'the zoo of statuses, odd Retry-After, 1xx' },
  F10: { about: 'error texts with keys, URLs, addresses, markup, a megabyte' },
  F11: { about: 'illegal lifecycles: terminals twice, data behind them, frames dropped, repeated, swapped' },
  F12: { about: 'lies about usage' },
  F13: { about: 'a kept connection that the upstream closed' },
  F14: { about: 'DNS, refused, slow to connect, TLS' },
  F15: { about: 'a Channel that flaps; none healthy' },
  F16: { about: 'clients that leave, in every phase' },
  F17: { about: 'readers that take nothing, over HTTP and WebSocket' },
  F18: {
    about: 'slow-loris, idle and half-open sockets',
    reason: 'a peer that vanishes without a word needs a cable; TCP probes are on',
  },
  F19: { about: 'pipelining, Expect, methods, targets, aliases' },
  F20: { about: 'request smuggling, hop-by-hop headers, trailers' },
  F21: { about: 'keys of every shape; their timing' },
  F22: { about: 'abuse of JSON: depth, size, `__proto__`, numbers, encodings' },
  F23: { about: 'patterns that take for ever' },
  F24: { about: 'multipart bodies of every kind' },
  F25: { about: 'links of clients and upstreams', reason: 'the gateway opens none, so there is no address list to get wrong' },
  F26: { about: 'WebSocket: turns, frames, bombs, foreign ids, revoked keys' },
  F27: { about: 'real clients: SDKs and coding agents' },
  F28: { about: 'many at once on a small balance' },
  F29: { about: 'one idempotency key many times at once, with other bodies, by other keys, after a restart' },
  F30: { about: 'kill -9 at every step of money and tasks' },
  F31: { about: 'a disk that is full, read-only, failing or corrupt; no descriptor left' },
  F32: { about: 'two primaries on one store; a replica' },
  F33: { about: 'the store: closing, long readers, growth', reason: 'the map is reserved as a whole at start and does not grow' },
  F34: { about: 'clocks that jump; borders of hours and days; time that a test passes' },
  F35: { about: 'spend windows, sub-accounts and reservations at their edges' },
  F36: { about: 'a price that changes in mid-stream, is missing, or is nonsense' },
  F37: { about: 'history: bounds, foreign ids, time, restarts' },
  F38: { about: 'no descriptor left; 10 000 connections' },
  F39: { about: 'SIGTERM, drain, restart and renewal under load' },
  F40: { about: 'soak: memory, sockets, timers and the event loop stay flat; asked = settled' },
  F41: { about: 'an exception in one request; a log that nobody reads, or that has no room' },
  F42: { about: 'secrets in logs, metrics, errors and answers' },
  F43: { about: 'cardinality of labels; metrics and reports off the public port' },
  F44: { about: 'memory of an idle stream and connection; added latency' },
  F45: { about: 'properties: cuts, folds, round trips, models of money and sessions' },
  F46: { about: 'supply chain', reason: 'signatures of the registry need the public registry and are not checked here' },
  F47: { about: 'what a request takes is weighed: values, bodies without money, what is kept, at its bound and beyond' },
};

export const INCIDENTS: Readonly<Record<string, Row>> = {
  V1: { about: 'CVE-2024-6587, PYSEC-2026-4070: `api_base`, `user_config` send the key elsewhere' },
  V2: { about: 'CVE-2025-66405, CVE-2026-110719: `x-portkey-custom-host`' },
  V3: { about: 'CVE-2026-55245, GO-2025-4154, GO-2026-5652: private ranges when links are fetched' },
  V4: { about: 'CVE-2026-108719: `callback_url` of a video' },
  V5: { about: 'CVE-2026-49468: the route is derived from Host' },
  V6: { about: 'CVE-2026-42208: injection in the lookup of a key' },
  V7: {
    about: 'CVE-2026-47101, -35029, -114612: privileges of made keys, a configuration endpoint, one salt for all',
  },
  V8: { about: 'CVE-2025-11203: health reports show keys' },
  V9: { about: 'CVE-2026-71479: a quota that overflows' },
  V10: { about: 'CVE-2026-41432: an empty secret is accepted' },
  V11: { about: 'CVE-2026-64859, -25591, -25802: keys in lists, patterns of users, markup on pages' },
  V12: { about: 'CVE-2026-86242: operators’ endpoints on the public port' },
  V13: { about: 'GHSA-gppg-gqw8-wh9g: code in a configuration' },
  V14: { about: 'LiteLLM 1.82.7: a malicious release; holes of undici, ws and multipart parsers' },
  V15: { about: 'OpenRouter 2025-08, 2026-02: a broken database answers 401' },
  V16: { about: 'opencode #39968, #40061: an end of the stream taken for success' },
};

export interface Cover {
  /** From the root. */
  readonly file: string;
  readonly title: string;
  readonly ids: readonly string[];
}

/** A title, or the name that one is made of: ids, then a colon, at the beginning of a string. */
const NAMED = /(['"`])((?:[A-Z]\d{1,2}(?:, )?)+): ((?:(?!\1).)*)\1/g;

export function covers(root = join(import.meta.dirname, '../..')): Cover[] {
  return globSync('{test,bench}/**/*.ts', { cwd: root })
    .filter((file) => !/support\/(fault-rows|weights)\.ts$/.test(file) && !file.includes('fixtures'))
    .sort()
    .flatMap((file) =>
      [...readFileSync(join(root, file), 'utf8').matchAll(NAMED)].map(([, , ids = '', title = '']) => ({
        file,
        title,
        ids: ids.split(', ').filter((id) => /^[FV]/.test(id)),
      })),
    )
    .filter(({ ids }) => ids.length > 0);
}

/** Empty when every row has a test or a reason, and no title names what does not exist. */
export function uncovered(found: readonly Cover[]): string[] {
  const named = new Set(found.flatMap(({ ids }) => ids));
  const rows = { ...FAULTS, ...INCIDENTS };
  return [
    ...Object.keys(rows).flatMap((id) => (named.has(id) ? [] : [`${id} has no test: ${rows[id]?.about ?? ''}`])),
    ...[...named].flatMap((id) => (Object.hasOwn(rows, id) ? [] : [`${id} is no row`])),
  ];
}

/** A table for docs/reliability.md. */
export function printRows(rows: Readonly<Record<string, Row>>, found: readonly Cover[]): string {
  const lines = Object.entries(rows).map(([id, { about, reason }]) => {
    const counts = new Map<string, number>();
    for (const { file, ids } of found) if (ids.includes(id)) counts.set(file, (counts.get(file) ?? 0) + 1);
    const tests = [...counts].map(([file, count]) => `${shortened(file)}${count === 1 ? '' : ` (${count})`}`).join(', ');
    return `| ${id} | ${about} | ${tests}${reason === undefined ? '' : `; ${reason}`} |`;
  });
  return ['| id | what | tests that name it |', '|---|---|---|', ...lines].join('\n');
}

const shortened = (file: string): string =>
  file.replace(/^test\/(slow\/)?/, '').replace(/\.(property|model)?\.?(test\.)?ts$/, '');
