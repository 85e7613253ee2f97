/**
 * The shape of the API reference: one typed list from which `/apidocs`, `/openapi.json` and the check against the route table are
 * made. Schemas are TypeBox, so that what is documented is a JSON Schema and nothing beside it.
 */
import type { TObject, TSchema } from 'typebox';
import type { ErrorCode } from './errors.ts';

export interface NamedText {
  readonly name: string;
  readonly text: string;
}

export interface HeaderReference extends NamedText {
  readonly required: boolean;
}

export interface BodyReference {
  readonly contentType: 'application/json' | 'multipart/form-data';
  readonly schema: TSchema;
}

export interface ResponseReference {
  readonly status: number;
  readonly text: string;
  /** Absent: no body, or not one of JSON. */
  readonly schema?: TSchema;
  readonly contentType?: 'application/json' | 'text/event-stream' | 'text/html';
}

/** The prefixes that an endpoint's path may also have; see `aliasesOf`. */
export type AliasRule = 'synchronous' | 'codex' | 'none';

export interface EndpointReference {
  /** Anchor on the page, operation id in OpenAPI. */
  readonly id: string;
  readonly group: string;
  readonly method: 'GET' | 'POST';
  /** With `{name}` for a part that varies. */
  readonly path: string;
  readonly aliasRule: AliasRule;
  readonly title: string;
  readonly summary: string;
  readonly auth: 'key' | 'none';
  /** What a reader must know beyond the fields, a paragraph each. */
  readonly rules?: readonly string[];
  readonly headers?: readonly HeaderReference[];
  readonly pathParameters?: TObject;
  readonly query?: TObject;
  readonly bodies?: readonly BodyReference[];
  readonly responses: readonly ResponseReference[];
  /** Events of its stream, in the order in which they come. */
  readonly events?: readonly NamedText[];
  readonly errors: readonly ErrorCode[];
  /** The messages protocol has an error body of its own. */
  readonly errorBody?: 'messages';
}

/** Every path beside the canonical one: `/v1`, no prefix, `/api/v1`, `/api`; for responses also below `codex/`. */
export function aliasesOf({ path, aliasRule }: Pick<EndpointReference, 'path' | 'aliasRule'>): string[] {
  if (aliasRule === 'none') return [];
  const tails = [path.slice('/v1'.length)];
  if (aliasRule === 'codex') tails.push(`/codex${path.slice('/v1'.length)}`);
  return tails.flatMap((tail) => ['/v1', '', '/api/v1', '/api'].map((prefix) => prefix + tail)).filter((alias) => alias !== path);
}
