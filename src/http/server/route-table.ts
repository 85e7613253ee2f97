/**
 * Every path of the API with its aliases, on one screen; the web pages know their own. Routes by the raw path alone, never by `Host` or the
 * query. Nothing is decoded or normalised, so any other spelling of a path does not exist. Knows no handler.
 */

export type RouteName =
  | 'chat_completions'
  | 'responses'
  | 'responses_compact'
  | 'messages'
  | 'completions'
  | 'embeddings'
  | 'image_generations'
  | 'image_edits'
  | 'videos'
  | 'video'
  | 'video_cancel'
  | 'models'
  | 'usage'
  | 'user_balance'
  | 'coding_balance'
  | 'readyz';

export type Method = 'GET' | 'POST';

interface Row {
  readonly name: RouteName;
  readonly path: string;
  readonly methods: readonly Method[];
}

/** A row with its `Allow` header. */
interface Entry extends Row {
  readonly allow: string;
}

/** Served beneath every prefix. `GET /responses` is the WebSocket upgrade; without one it is answered 426. */
const ALIASED: readonly Row[] = [
  { name: 'chat_completions', path: '/chat/completions', methods: ['POST'] },
  { name: 'responses', path: '/responses', methods: ['GET', 'POST'] },
  { name: 'responses', path: '/codex/responses', methods: ['GET', 'POST'] },
  { name: 'responses_compact', path: '/responses/compact', methods: ['POST'] },
  { name: 'responses_compact', path: '/codex/responses/compact', methods: ['POST'] },
  { name: 'messages', path: '/messages', methods: ['POST'] },
  { name: 'completions', path: '/completions', methods: ['POST'] },
  { name: 'embeddings', path: '/embeddings', methods: ['POST'] },
  { name: 'image_generations', path: '/images/generations', methods: ['POST'] },
  { name: 'image_edits', path: '/images/edits', methods: ['POST'] },
  { name: 'models', path: '/models', methods: ['GET'] },
  { name: 'usage', path: '/usage', methods: ['GET'] },
];
const PREFIXES = ['/v1', '', '/api/v1', '/api'];

const EXACT: readonly Row[] = [
  { name: 'videos', path: '/v1/videos', methods: ['GET', 'POST'] },
  { name: 'user_balance', path: '/user/balance', methods: ['GET'] },
  { name: 'coding_balance', path: '/api/codex/usage', methods: ['GET'] },
  { name: 'readyz', path: '/readyz', methods: ['GET'] },
];

const entryOf = (row: Row): Entry => {
  const allow = [...row.methods.flatMap((name) => (name === 'GET' ? ['GET', 'HEAD'] : [name])), 'OPTIONS'].join(', ');
  return { ...row, allow };
};

const VIDEO = /^\/v1\/videos\/([A-Za-z0-9_-]{1,128})(\/cancel)?$/;
const VIDEO_ROW = entryOf({ name: 'video', path: '/v1/videos/{id}', methods: ['GET'] });
const VIDEO_CANCEL_ROW = entryOf({ name: 'video_cancel', path: '/v1/videos/{id}/cancel', methods: ['POST'] });

const TABLE: ReadonlyMap<string, Entry> = new Map([
  ...PREFIXES.flatMap((prefix) => ALIASED.map((row): [string, Entry] => [prefix + row.path, entryOf(row)])),
  ...EXACT.map((row): [string, Entry] => [row.path, entryOf(row)]),
]);

/** Every endpoint once, by its canonical path: what the API reference must list. */
export const ROUTES: readonly { readonly method: Method; readonly path: string }[] = [
  ...ALIASED.filter(({ path }) => !path.startsWith('/codex/')).map((row) => ({ ...row, path: `/v1${row.path}` })),
  ...EXACT,
  VIDEO_ROW,
  VIDEO_CANCEL_ROW,
].flatMap(({ methods, path }) => methods.map((method) => ({ method, path })));

export type RouteMatch =
  /** `method` is GET for HEAD. */
  | { readonly kind: 'route'; readonly name: RouteName; readonly method: Method; readonly id?: string }
  | { readonly kind: 'not_found' }
  | { readonly kind: 'method_not_allowed'; readonly allow: string }
  | { readonly kind: 'options'; readonly allow: string };

/** `path` without its query. HEAD is routed as GET. */
export function matchRoute(method: string, path: string): RouteMatch {
  const exact = TABLE.get(path);
  const video = exact === undefined ? VIDEO.exec(path) : null;
  const entry = exact ?? (video === null ? undefined : video[2] === undefined ? VIDEO_ROW : VIDEO_CANCEL_ROW);
  if (entry === undefined) return { kind: 'not_found' };
  const { name, methods, allow } = entry;
  if (method === 'OPTIONS') return { kind: 'options', allow };
  const effective = method === 'HEAD' ? 'GET' : method;
  const known = methods.find((each) => each === effective);
  if (known === undefined) return { kind: 'method_not_allowed', allow };
  return { kind: 'route', name, method: known, ...(video?.[1] === undefined ? {} : { id: video[1] }) };
}

/** The path of a request target: origin-form, or the absolute-form that proxies use. Its authority and query are ignored. */
export function pathOfTarget(target: string): string {
  const absolute = /^https?:\/\/[^/?#]*/i.exec(target);
  const rest = absolute === null ? target : target.slice(absolute[0].length);
  const end = rest.search(/[?#]/);
  const path = end < 0 ? rest : rest.slice(0, end);
  return absolute !== null && path === '' ? '/' : path;
}

/** True for paths whose clients read errors in the messages shape, unknown ones such as `/v1/messages/count_tokens` included. */
export function speaksMessages(path: string): boolean {
  return /^(\/api)?(\/v1)?\/messages(\/|$)/.test(path);
}

/** The query of a request target. */
export function queryOfTarget(target: string): URLSearchParams {
  return new URLSearchParams(/\?([^#]*)/.exec(target)?.[1] ?? '');
}
