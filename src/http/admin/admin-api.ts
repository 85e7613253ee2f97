/**
 * The admin API on the operations port: who asks, what for, why, and the answer. Everything below its prefix needs a token, and a
 * browser's request must come from a page of this very address.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Logger } from 'pino';
import type { TObject } from 'typebox';
import type { AdminRole, AdminToken, AdminTokens } from '../../store/admin-tokens.ts';
import type { Cause } from '../../store/accounts.ts';
import type { Controls } from '../../store/controls.ts';
import type { Clock } from '../../streams/clock.ts';
import type { OperatorReports } from '../operations/reports.ts';
import { pathOfTarget } from '../server/route-table.ts';
import { failureOf, INTERNAL, type AdminFailure, writeFailure, writeJson, writeLongJson } from './reply.ts';
import { matchRoute } from './match-route.ts';
import { adminDocument } from './openapi.ts';
import { checkRequest, type ReadRequest, readRequest } from './read-request.ts';
import { InputError, RefusedError } from './refusals.ts';
import { SignInRequest } from './requests.ts';
import { ADMIN_PREFIX, ADMIN_ROUTES, type AdminActions, type AdminCall, type AdminRoute, type AdminRouteName } from './routes.ts';
import { type SignedIn, SignIn } from './sign-in.ts';
import { writeEvents } from './write-events.ts';

export interface AdminApiOptions {
  readonly actions: AdminActions;
  /** Opens the store where it is not open yet. */
  readonly store: () => Promise<{ readonly adminTokens: AdminTokens; readonly controls: Controls }>;
  /** Whether videos may be changed here. */
  readonly isPrimary: () => boolean;
  readonly clock: Clock;
  readonly log: Logger;
  readonly mint: (prefix: string) => string;
}

/** The admin API of a gateway that reports so. `reload` makes its processes read the configuration again. */
export type AdminOf = (reports: OperatorReports, reload: () => void) => AdminApiOptions;

export interface AdminApi {
  isPath(path: string): boolean;
  /** Never rejects. */
  answer(request: IncomingMessage, response: ServerResponse): Promise<void>;
}

const SESSION = `${ADMIN_PREFIX}session`;
const DOCUMENT = `${ADMIN_PREFIX}openapi.json`;

const UNAUTHORIZED: AdminFailure = {
  status: 401,
  code: 'unauthorized',
  message: 'An admin token is needed: Authorization: Bearer TOKEN. `mizu admin-tokens create` makes one.',
  headers: { 'www-authenticate': 'Bearer' },
};
const BUSY: AdminFailure = {
  status: 429,
  code: 'too_many_attempts',
  message: 'Too many sign-ins fail at the moment.',
  headers: { 'retry-after': '5' },
};
const FOREIGN: AdminFailure = {
  status: 403,
  code: 'foreign_origin',
  message: 'Only pages of this very address may use the admin API.',
};
const FORBIDDEN: AdminFailure = { status: 403, code: 'forbidden', message: 'This token may only read.' };
const NOT_FOUND: AdminFailure = { status: 404, code: 'not_found', message: 'There is no such path.' };
const NOT_PRIMARY: AdminFailure = {
  status: 503,
  code: 'video_primary_required',
  message: 'This gateway is a replica: videos are changed at the primary.',
};

/** Nobody knows yet who sends it, and a crowd may. */
const SIGN_IN_BYTES = 8 * 1024;

/** Live tails at once: each looks at the store twice a second. */
const MOST_TAILS = 64;

/** What the requests of one listener share. */
interface Running extends AdminApiOptions {
  readonly signIn: SignIn;
  readonly tails: Set<ServerResponse>;
}

export function createAdminApi(options: AdminApiOptions): AdminApi {
  const { log, clock } = options;
  const signIn = new SignIn({ tokens: async () => (await options.store()).adminTokens, clock, log });
  const running: Running = { ...options, signIn, tails: new Set() };
  return {
    isPath: (path) => path.startsWith(ADMIN_PREFIX),
    async answer(request, response) {
      try {
        const failure = await answer(running, request, response);
        if (failure !== undefined) writeFailure(response, failure);
      } catch (thrown) {
        const failure = failureOf(thrown);
        if (failure === undefined || failure.status >= 500) log.error({ err: thrown }, 'admin request failed');
        if (response.headersSent) response.destroy();
        else writeFailure(response, failure ?? INTERNAL);
      } finally {
        // What was not read of the body must not hold up the next request of the connection.
        request.resume();
      }
    },
  };
}

/** What is refused before any action is returned; what an action refuses is thrown. */
async function answer(running: Running, request: IncomingMessage, response: ServerResponse): Promise<AdminFailure | undefined> {
  const { signIn, clock } = running;
  if (isForeign(request)) return FOREIGN;
  const path = pathOfTarget(request.url ?? '/');
  if (path === SESSION && request.method === 'POST') return await openSession(signIn, request, response, clock);
  const found = await signIn.identify(request);
  if (typeof found === 'string') return refusalOf(found);
  const { token } = found;
  const method = request.method === 'HEAD' ? 'GET' : (request.method ?? 'GET');
  if (path === SESSION) return session(signIn, token, method, request, response);
  if (path === DOCUMENT) {
    if (method !== 'GET') return notAllowed(['GET']);
    writeJson(response, 200, adminDocument());
    return undefined;
  }
  const matched = matchRoute(path);
  if (matched === undefined) return NOT_FOUND;
  const name = matched.routes.get(method);
  if (name === undefined) return notAllowed([...matched.routes.keys()]);
  const route: AdminRoute = ADMIN_ROUTES[name];
  if (!mayUse(token, route.role)) return FORBIDDEN;
  if (route.primaryOnly === true && !running.isPrimary()) return NOT_PRIMARY;
  const read = await readRequest({ request, response, clock }, route.request, matched.members);
  const lasts = () => signIn.lasts(found, request);
  await perform(running, name, { token, lasts }, read, request, response);
  return undefined;
}

const refusalOf = (found: Exclude<SignedIn, object>): AdminFailure => (found === 'busy' ? BUSY : UNAUTHORIZED);

function notAllowed(methods: readonly string[]): AdminFailure {
  return {
    status: 405,
    code: 'method_not_allowed',
    message: 'The method is not allowed.',
    headers: { allow: methods.join(', ') },
  };
}

const mayUse = ({ role }: AdminToken, needed: AdminRole): boolean => role === 'write' || needed === 'read';

/** A page of another address sends its own as the origin; a program sends none. */
function isForeign({ headers }: IncomingMessage): boolean {
  const { origin, host } = headers;
  const site = headers['sec-fetch-site'];
  if (origin !== undefined && URL.parse(origin)?.host !== host?.toLowerCase()) return true;
  return site !== undefined && site !== 'same-origin' && site !== 'none';
}

async function openSession(
  signIn: SignIn,
  request: IncomingMessage,
  response: ServerResponse,
  clock: Clock,
): Promise<AdminFailure | undefined> {
  const { members } = await readRequest({ request, response, clock, maxBytes: SIGN_IN_BYTES }, SignInRequest, {});
  const opened = await signIn.open(checkRequest(SignInRequest, members).token, request);
  if (typeof opened === 'string') return refusalOf(opened);
  const { name, role } = opened.token;
  writeJson(response, 200, { name, role }, { 'set-cookie': opened.cookie });
  return undefined;
}

function session(
  signIn: SignIn,
  { name, role }: AdminToken,
  method: string,
  request: IncomingMessage,
  response: ServerResponse,
): AdminFailure | undefined {
  if (method !== 'GET' && method !== 'DELETE') return notAllowed(['GET', 'POST', 'DELETE']);
  writeJson(response, 200, { name, role }, method === 'DELETE' ? { 'set-cookie': signIn.close(request) } : {});
  return undefined;
}

const KEY = /^[\x21-\x7e]{1,64}$/;

async function perform(
  options: Running,
  name: AdminRouteName,
  { token, lasts }: { readonly token: AdminToken; readonly lasts: () => Promise<boolean> },
  read: ReadRequest,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const route: AdminRoute<TObject> = ADMIN_ROUTES[name];
  const key = request.headers['idempotency-key'];
  const isChange = route.method !== 'GET';
  // Checked before its name is claimed: a request that makes no sense claims nothing.
  checkRequest(route.request, read.members);
  const id = await causeId(options, token, isChange ? key : undefined, read.hash);
  const cause: Cause = {
    id: id.cause,
    by: `admin:${token.name}`,
    ...(read.reason === undefined ? {} : { note: read.reason }),
  };
  const gone = new AbortController();
  response.on('close', () => gone.abort());
  const call: AdminCall = { cause, gone: gone.signal };
  if (name === 'followExchanges') {
    const asked = checkRequest(ADMIN_ROUTES.followExchanges.request, read.members);
    if (request.method === 'HEAD') gone.abort();
    if (options.tails.size >= MOST_TAILS)
      throw new RefusedError(`${MOST_TAILS} live tails are open, and no more may be`, 'conflict', 'too_many_tails');
    options.tails.add(response);
    try {
      await writeEvents(response, options.actions.followExchanges(call, asked), {
        clock: options.clock,
        gone: gone.signal,
        lasts,
      });
    } finally {
      options.tails.delete(response);
    }
    return;
  }
  const value = await runAction(options.actions, name, call, read);
  if (isChange) options.log.info({ route: name, by: cause.by, cause: cause.id, reason: read.reason }, 'operator');
  await writeLongJson(response, route.status ?? 200, value, id.isRepeated ? { 'idempotency-replayed': 'true' } : {});
}

/** Each name with its own types: the request was checked against the schema of that very row. */
function runAction<Name extends Exclude<AdminRouteName, 'followExchanges'>>(
  actions: AdminActions,
  name: Name,
  call: AdminCall,
  { members }: ReadRequest,
): Promise<unknown> {
  const action: (call: AdminCall, request: never) => Promise<unknown> = actions[name];
  return action(call, checkRequest(ADMIN_ROUTES[name].request, members) as never);
}

/** The cause of a change: the same `Idempotency-Key` of the same token is the same cause, once for one request. */
async function causeId(
  options: AdminApiOptions,
  token: AdminToken,
  key: string | string[] | undefined,
  hash: string,
): Promise<{ readonly cause: string; readonly isRepeated: boolean }> {
  if (key === undefined) return { cause: options.mint('op_'), isRepeated: false };
  if (typeof key !== 'string' || !KEY.test(key))
    throw new InputError(() => 'Idempotency-Key must be 1 to 64 visible ASCII characters');
  const cause = `${token.prefix.slice(-4)}${token.last4}:${key}`;
  const claimed = await (await options.store()).controls.claim(cause, hash);
  if (claimed === 'other')
    throw new RefusedError('the Idempotency-Key was used for another request', 'conflict', 'idempotency_key_reused');
  return { cause, isRepeated: claimed === 'same' };
}
