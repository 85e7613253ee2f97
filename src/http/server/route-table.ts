/**
 * Every endpoint of the API, one row each: its paths, its methods, and what is known of it before its handler runs. The web pages
 * know their own paths. Routes by the raw path alone, never by `Host` or the query, so any other spelling of a path does not
 * exist. Its handler is named in `routes/handlers.ts`.
 */
import type { Dialect } from '../../codecs/canonical/dialect.ts';

export type Method = 'GET' | 'POST';

/** OpenTelemetry's names of what a GenAI call does. */
export type Operation = 'chat' | 'text_completion' | 'embeddings' | 'generate_content';

interface RowShape {
  /** The canonical path. `{id}` stands for a parameter. */
  readonly path: string;
  /**
   * `synchronous`: beneath every one of {@link PREFIXES} in place of `/v1`; `codex`: beneath `codex/` there, too; `none`: nowhere
   * else.
   */
  readonly aliases: 'synchronous' | 'codex' | 'none';
  readonly methods: readonly Method[];
  /** In whose shape errors are written; absent: the one that all OpenAI endpoints share. */
  readonly dialect?: Dialect;
  /** Set where a call is an exchange with an upstream, and then it is traced under this name. */
  readonly operation?: Operation;
  /** `word`: one segment of an id of ours. `rest`: all that follows, slashes included, percent-decoded once. */
  readonly id?: 'word' | 'rest';
  /** Methods that it does not take are answered 404 in place of 405. */
  readonly hidesMethods?: true;
}

const ROWS = {
  chat_completions: {
    path: '/v1/chat/completions',
    aliases: 'synchronous',
    methods: ['POST'],
    dialect: 'chat',
    operation: 'chat',
  },
  // `GET` is the WebSocket upgrade; without one it is answered 426.
  responses: { path: '/v1/responses', aliases: 'codex', methods: ['GET', 'POST'], dialect: 'responses', operation: 'chat' },
  responses_compact: {
    path: '/v1/responses/compact',
    aliases: 'codex',
    methods: ['POST'],
    dialect: 'responses',
    operation: 'chat',
  },
  messages: { path: '/v1/messages', aliases: 'synchronous', methods: ['POST'], dialect: 'messages', operation: 'chat' },
  completions: {
    path: '/v1/completions',
    aliases: 'synchronous',
    methods: ['POST'],
    dialect: 'completions',
    operation: 'text_completion',
  },
  embeddings: { path: '/v1/embeddings', aliases: 'synchronous', methods: ['POST'], operation: 'embeddings' },
  image_generations: { path: '/v1/images/generations', aliases: 'synchronous', methods: ['POST'], operation: 'generate_content' },
  image_edits: { path: '/v1/images/edits', aliases: 'synchronous', methods: ['POST'], operation: 'generate_content' },
  videos: { path: '/v1/videos', aliases: 'none', methods: ['GET', 'POST'] },
  video: { path: '/v1/videos/{id}', aliases: 'none', methods: ['GET'], id: 'word' },
  video_cancel: { path: '/v1/videos/{id}/cancel', aliases: 'none', methods: ['POST'], id: 'word' },
  models: { path: '/v1/models', aliases: 'synchronous', methods: ['GET'] },
  // A vendor's own calls of a model (`POST /v1/models/X:generateContent`) are no endpoints here.
  model: { path: '/v1/models/{id}', aliases: 'synchronous', methods: ['GET'], id: 'rest', hidesMethods: true },
  usage: { path: '/v1/usage', aliases: 'synchronous', methods: ['GET'] },
  user_balance: { path: '/user/balance', aliases: 'none', methods: ['GET'] },
  coding_balance: { path: '/api/codex/usage', aliases: 'none', methods: ['GET'] },
  readyz: { path: '/readyz', aliases: 'none', methods: ['GET'] },
} as const satisfies Readonly<Record<string, RowShape>>;

export type RouteName = keyof typeof ROWS;

/** One endpoint. */
export interface Route extends RowShape {
  readonly name: RouteName;
  /** The value of the `Allow` header. */
  readonly allow: string;
}

const CANONICAL = '/v1';
/** The last one is what a client sends whose base URL ends in `/v1` and that adds another. */
const PREFIXES = [CANONICAL, '', '/api/v1', '/api', '/v1/v1'];

const ROUTE_LIST: readonly Route[] = Object.entries(ROWS).map(([name, row]: [string, RowShape]) => ({
  ...row,
  name: asName(name),
  allow: [...row.methods.flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method])), 'OPTIONS'].join(', '),
}));

function asName(name: string): RouteName {
  if (!(name in ROWS)) throw new Error(`no row is named ${name}`);
  return name as RouteName;
}

function pathsOf({ path, aliases }: RowShape): string[] {
  if (aliases === 'none') return [path];
  const tail = path.slice(CANONICAL.length);
  const tails = aliases === 'codex' ? [tail, `/codex${tail}`] : [tail];
  return tails.flatMap((each) => PREFIXES.map((prefix) => prefix + each));
}

const EXACT: ReadonlyMap<string, Route> = new Map(
  ROUTE_LIST.filter(({ id }) => id === undefined).flatMap((route) => pathsOf(route).map((path) => [path, route])),
);

const LONGEST_PATH = Math.max(...EXACT.keys().map(({ length }) => length));

const ID_PATTERNS = { word: '([A-Za-z0-9_-]{1,128})', rest: '(.+)' } as const;
const WITH_ID: readonly { readonly route: Route; readonly pattern: RegExp }[] = ROUTE_LIST.flatMap((route) => {
  const { id } = route;
  if (id === undefined) return [];
  return pathsOf(route).map((path) => ({ route, pattern: new RegExp(`^${path.replace('{id}', ID_PATTERNS[id])}$`) }));
});

/** Every endpoint once, by its canonical path: what the API reference must list. */
export const ROUTES: readonly { readonly method: Method; readonly path: string }[] = ROUTE_LIST.flatMap(({ methods, path }) =>
  methods.map((method) => ({ method, path })),
);

export function routeOf(name: RouteName): Route {
  const route = ROUTE_LIST.find((each) => each.name === name);
  if (route === undefined) throw new Error(`no row is named ${name}`);
  return route;
}

export type RouteMatch =
  /** `method` is GET for HEAD. */
  | { readonly kind: 'route'; readonly route: Route; readonly method: Method; readonly id?: string }
  /** `above`: the listed path beneath which it lies, in whose dialect its client reads errors. */
  | { readonly kind: 'not_found'; readonly above?: Route }
  | { readonly kind: 'method_not_allowed' | 'options'; readonly route: Route };

/** `path` without its query. HEAD is routed as GET. */
export function matchRoute(method: string, path: string): RouteMatch {
  const found = find(path);
  if (found === undefined) return notFound(path);
  const { route, id } = found;
  if (method === 'OPTIONS') return { kind: 'options', route };
  const effective = method === 'HEAD' ? 'GET' : method;
  const known = route.methods.find((each) => each === effective);
  if (known !== undefined) return { kind: 'route', route, method: known, ...(id === undefined ? {} : { id }) };
  return route.hidesMethods === true ? { kind: 'not_found' } : { kind: 'method_not_allowed', route };
}

function find(path: string): { readonly route: Route; readonly id?: string } | undefined {
  const exact = EXACT.get(path);
  if (exact !== undefined) return { route: exact };
  for (const { route, pattern } of WITH_ID) {
    const id = pattern.exec(path)?.[1];
    if (id !== undefined) return { route, id: route.id === 'rest' ? decoded(id) : id };
  }
  return undefined;
}

/** What is not percent-encoded text names nothing that exists, as it stands. */
function decoded(id: string): string {
  try {
    return decodeURIComponent(id);
  } catch (error) {
    if (error instanceof URIError) return id;
    throw error;
  }
}

function notFound(path: string): RouteMatch {
  // A longer beginning is none of the listed: of a path of slashes each would be looked up, with all of its letters.
  for (let end = path.lastIndexOf('/', LONGEST_PATH); end > 0; end = path.lastIndexOf('/', end - 1)) {
    const above = EXACT.get(path.slice(0, end));
    if (above !== undefined) return { kind: 'not_found', above };
  }
  return { kind: 'not_found' };
}

/** The path of a request target: origin-form, or the absolute-form that proxies use. Its authority and query are ignored. */
export function pathOfTarget(target: string): string {
  const absolute = /^https?:\/\/[^/?#]*/i.exec(target);
  const rest = absolute === null ? target : target.slice(absolute[0].length);
  const end = rest.search(/[?#]/);
  const path = end < 0 ? rest : rest.slice(0, end);
  return absolute !== null && path === '' ? '/' : path;
}

/** The query of a request target. */
export function queryOfTarget(target: string): URLSearchParams {
  return new URLSearchParams(/\?([^#]*)/.exec(target)?.[1] ?? '');
}
