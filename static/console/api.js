/** What the console asks of the admin API, and in which words it fails. The cookie of the session goes along by itself. */

/** `kind`: `away` (no answer), `store` (503), `signed_out` (401), `busy` (429), `refused` (anything else). */
export class Failed extends Error {
  constructor(kind, message, param) {
    super(message);
    this.kind = kind;
    this.param = param;
  }
}

const KINDS = new Map([
  [401, 'signed_out'],
  [429, 'busy'],
  [502, 'away'],
  [503, 'store'],
  [504, 'away'],
]);
const PATIENCE_MS = 30_000;

/** @returns the answer's JSON. Throws Failed, or the signal's reason where it was aborted. */
async function ask(path, { signal, ...init } = {}) {
  const late = AbortSignal.timeout(PATIENCE_MS);
  let answer;
  let body;
  try {
    answer = await fetch(`admin/v1/${path}`, {
      ...init,
      cache: 'no-store',
      credentials: 'same-origin',
      signal: signal === undefined ? late : AbortSignal.any([signal, late]),
    });
    body = await answer.text();
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Failed('away', 'The gateway does not answer.');
  }
  let json;
  try {
    json = JSON.parse(body);
  } catch {
    throw new Failed(KINDS.get(answer.status) ?? 'refused', `What answers here is no gateway: HTTP ${answer.status}.`);
  }
  if (answer.ok) return json;
  const { message = `HTTP ${answer.status}`, param } = json.error ?? {};
  throw new Failed(KINDS.get(answer.status) ?? 'refused', message, param);
}

/** `?name=value`; members without a value are left out. */
export function search(query) {
  const text = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== undefined && value !== '')).toString();
  return text === '' ? '' : `?${text}`;
}

export const get = (path, query = {}, signal = undefined) => ask(`${path}${search(query)}`, { signal });

/** A change, made once for one `once`. `reason` of a DELETE, which has no body, stands in a header, as UTF-8. */
export function change(method, path, { reason, ...members } = {}, once = newId()) {
  const headers = { 'idempotency-key': once };
  if (method === 'DELETE') {
    if (reason !== undefined) headers['x-mizu-reason'] = String.fromCharCode(...new TextEncoder().encode(reason));
    return ask(path, { method, headers });
  }
  headers['content-type'] = 'application/json';
  return ask(path, { method, headers, body: JSON.stringify({ ...members, ...(reason === undefined ? {} : { reason }) }) });
}

/** `crypto.randomUUID` is missing where the page came over plain HTTP. */
export function newId() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('');
}

export const session = () => ask('session');
export const signIn = (token) =>
  ask('session', { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ token }) });
export const signOut = () => ask('session', { method: 'DELETE' });

/** Whether the gateway serves, which asks nobody who he is. Undefined: it does not answer. */
export async function health() {
  try {
    return await (await fetch('healthz', { cache: 'no-store', signal: AbortSignal.timeout(5_000) })).json();
  } catch {
    return undefined;
  }
}

/** `keys/ID/transfer`, whatever is in the id. */
export const path = (...parts) => parts.map(encodeURIComponent).join('/');
