/** Which route a path is one of. */
import { ADMIN_PREFIX, ADMIN_ROUTES, type AdminRoute, type AdminRouteName } from './routes.ts';

export interface MatchedPath {
  /** By method. */
  readonly routes: ReadonlyMap<string, AdminRouteName>;
  /** The members of the path, decoded. */
  readonly members: Readonly<Record<string, string>>;
}

interface Pattern {
  readonly segments: readonly string[];
  readonly routes: Map<string, AdminRouteName>;
}

const isMember = (segment: string): boolean => segment.startsWith('{');

/** Paths that name every segment come first: `exchanges/live` is no id. */
const PATTERNS: readonly Pattern[] = patternsOf();

function patternsOf(): Pattern[] {
  const patterns = new Map<string, Pattern>();
  for (const [name, { method, path }] of Object.entries<AdminRoute>(ADMIN_ROUTES)) {
    const pattern = patterns.get(path) ?? { segments: path.split('/'), routes: new Map() };
    if (isRouteName(name)) pattern.routes.set(method, name);
    patterns.set(path, pattern);
  }
  const members = ({ segments }: Pattern): number => segments.filter(isMember).length;
  return [...patterns.values()].sort((a, b) => members(a) - members(b));
}

function isRouteName(name: string): name is AdminRouteName {
  return Object.hasOwn(ADMIN_ROUTES, name);
}

/** Undefined for a path that is none of the API's. */
export function matchRoute(path: string): MatchedPath | undefined {
  const segments = path.slice(ADMIN_PREFIX.length).split('/').map(decoded);
  for (const { segments: pattern, routes } of PATTERNS) {
    if (pattern.length !== segments.length) continue;
    const members: [string, string][] = [];
    const fits = pattern.every((wanted, index) => {
      const found = segments[index];
      if (found === undefined || found === '') return false;
      if (isMember(wanted)) members.push([wanted.slice(1, -1), found]);
      return isMember(wanted) || wanted === found;
    });
    if (fits) return { routes, members: Object.fromEntries(members) };
  }
  return undefined;
}

/** Undefined for a segment that is not valid. */
function decoded(segment: string): string | undefined {
  try {
    return decodeURIComponent(segment);
  } catch (error) {
    if (error instanceof URIError) return undefined;
    throw error;
  }
}
