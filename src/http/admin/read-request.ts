/** Reads what an admin request asks for into what its route's schema describes, and why it is asked. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { hash } from 'node:crypto';
import type { Static, TObject } from 'typebox';
import { Value } from 'typebox/value';
import { isObject, type JsonObject } from '../../codecs/canonical/json.ts';
import { GatewayError } from '../../codecs/canonical/error.ts';
import type { Clock } from '../../streams/clock.ts';
import { type ShapeChecker, shapeChecker } from '../config/check-shape.ts';
import { parseJsonBody, receiveWhole } from '../request/body.ts';
import { InputError } from './refusals.ts';

const MAX_BODY_BYTES = 1024 * 1024;
const BODY_MS = 30_000;
const MAX_REASON = 1_000;

export interface ReadRequest {
  /** The members of path, query and body; not checked yet. */
  readonly members: JsonObject;
  readonly reason?: string;
  /** Stands for the whole request: two that are the same have the same. */
  readonly hash: string;
}

export interface Received {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly clock: Clock;
  /** Default: what any change may have. */
  readonly maxBytes?: number;
}

/** `inPath`: the members of the path. Throws GatewayError and InputError. */
export async function readRequest(
  received: Received,
  schema: TObject,
  inPath: Readonly<Record<string, string>>,
): Promise<ReadRequest> {
  const { request } = received;
  const { method = 'GET', url = '/' } = request;
  const hasBody = method !== 'GET' && method !== 'HEAD' && method !== 'DELETE';
  const query = url.includes('?') ? new URLSearchParams(url.slice(url.indexOf('?') + 1)) : new URLSearchParams();
  const [unasked] = query.keys();
  if (hasBody && unasked !== undefined) throw new InputError(() => `${unasked} stands in the query: members belong in the body`);
  const { text, json } = hasBody ? await bodyOf(received) : { text: '', json: membersOf(query, schema) };
  const { reason: inBody, ...rest } = json;
  const own = Object.hasOwn(schema.properties, 'reason') ? json : rest;
  for (const name of Object.keys(inPath)) {
    if (own[name] !== undefined) throw new InputError((shown) => `${shown(name)} stands in the path`);
  }
  const reason = reasonOf(inBody, request);
  return {
    members: { ...own, ...inPath },
    ...(reason === undefined ? {} : { reason }),
    hash: hash('sha256', `${method} ${url}\n${text}`, 'hex'),
  };
}

async function bodyOf(received: Received): Promise<{ readonly text: string; readonly json: JsonObject }> {
  const { request, response, clock, maxBytes = MAX_BODY_BYTES } = received;
  const bytes = await receiveWhole(request, response, { maxBytes, timeoutMs: BODY_MS }, clock);
  if (bytes.length === 0) return { text: '', json: {} };
  const [type = ''] = (request.headers['content-type'] ?? '').split(';');
  // A form of a foreign page cannot be of this type.
  if (type.trim().toLowerCase() !== 'application/json')
    throw new GatewayError('unsupported_media_type', 'The body must be of the type application/json.');
  return parseJsonBody(bytes);
}

/** Why it is asked, for the journal: a member of the body, or a header where it is plain or UTF-8. */
function reasonOf(inBody: unknown, { headers }: IncomingMessage): string | undefined {
  const header = headers['x-mizu-reason'];
  const reason = inBody ?? (typeof header === 'string' ? Buffer.from(header, 'latin1').toString('utf8') : undefined);
  if (reason === undefined) return undefined;
  if (typeof reason !== 'string' || reason.length > MAX_REASON)
    throw new InputError((name) => `${name('reason')} must be a text of at most ${MAX_REASON} characters`);
  return reason;
}

/** The members of a query, each of the kind that the schema asks for; what is none of that kind is left to the check. */
function membersOf(query: URLSearchParams, schema: TObject): JsonObject {
  const members = new Map<string, JsonObject[string]>();
  for (const [name, text] of query) {
    if (members.has(name)) throw new InputError((shown) => `${shown(name)} is given twice`);
    const property: unknown = Object.hasOwn(schema.properties, name) ? schema.properties[name] : undefined;
    members.set(name, isObject(property) ? typed(text, property) : text);
  }
  return Object.fromEntries(members);
}

function typed(text: string, { type }: JsonObject): JsonObject[string] {
  if (type === 'integer' && /^\d{1,16}$/.test(text)) return Number(text);
  if (type === 'boolean' && (text === 'true' || text === 'false')) return text === 'true';
  return type === 'array' ? text.split(',').map((entry) => entry.trim()) : text;
}

const CHECKERS = new WeakMap<TObject, ShapeChecker>();

/** Throws InputError that names the first member that does not fit. */
export function checkRequest<Request extends TObject>(schema: Request, members: JsonObject): Static<Request> {
  if (Value.Check(schema, members)) return members;
  for (const name of schema.required ?? []) {
    if (members[name] === undefined) throw new InputError((shown) => `${shown(name)} is missing`);
  }
  const problemsOf = CHECKERS.get(schema) ?? shapeChecker(schema);
  CHECKERS.set(schema, problemsOf);
  const [first] = problemsOf(members);
  const { path = '', message = 'does not fit' } = first ?? {};
  throw new InputError((name) =>
    path === '' ? `the request ${message}` : `${name(path)} ${message.replace('is not a known key', 'is not a known member')}`,
  );
}
