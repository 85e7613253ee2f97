/**
 * The fields of a JSON Schema as rows: name, type, whether required, what it means. Nested objects are indented by their path.
 */
import type { TSchema } from 'typebox';
import { SHARED_SCHEMAS, type SharedSchemaName } from './api-reference/shared-schemas.ts';
import { type Fragment, html, type Markup } from './html.ts';

/** The parts of a schema that are read here. */
interface Node {
  readonly $ref?: string;
  readonly type?: string;
  readonly const?: string | number | boolean;
  readonly enum?: readonly string[];
  readonly anyOf?: readonly Node[];
  readonly items?: Node;
  readonly properties?: Readonly<Record<string, Node>>;
  readonly required?: readonly string[];
  readonly description?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
}

/** Deeper fields are only in the OpenAPI document. */
const DEEPEST = 3;

export function fieldTable(schema: TSchema, caption: string): Markup {
  const rows = fieldRows(schema as Node, '', 0);
  if (rows.length === 0) return html``;
  return html`<div class="scroll" tabindex="0" role="region" aria-label="${caption}"><table><caption>${caption}</caption><thead><tr><th scope="col">Field</th><th scope="col">Type</th><th scope="col">Meaning</th></tr></thead><tbody>${rows}</tbody></table></div>
`;
}

function fieldRows(node: Node, path: string, depth: number): Markup[] {
  const target = resolve(node);
  if (target.items !== undefined) return fieldRows(target.items, `${path}[]`, depth);
  if (target.anyOf !== undefined) return target.anyOf.flatMap((choice) => fieldRows(choice, path, depth));
  return Object.entries(target.properties ?? {}).flatMap(([name, property]) => {
    const full = path === '' ? name : `${path}.${name}`;
    const needed = target.required?.includes(name) === true;
    const own = html`<tr><th scope="row"><code>${full}</code>${needed ? html` <span class="needed">required</span>` : ''}</th><td>${typeOf(property)}</td><td>${prose(describe(property))}</td></tr>
`;
    return depth + 1 >= DEEPEST ? [own] : [own, ...fieldRows(property, full, depth + 1)];
  });
}

function resolve(node: Node): Node {
  const name = node.$ref?.split('/').at(-1);
  return name === undefined ? node : (SHARED_SCHEMAS[name as SharedSchemaName] as Node);
}

function typeOf(node: Node): string {
  const target = resolve(node);
  if (target.const !== undefined) return JSON.stringify(target.const);
  if (target.enum !== undefined) return target.enum.join(', ');
  if (target.anyOf !== undefined) return [...new Set(target.anyOf.map(typeOf))].join(' or ');
  if (target.items !== undefined) return `array of ${typeOf(target.items)}`;
  return target.type ?? 'any';
}

function describe(node: Node): string {
  const { description = '', minimum, maximum, minItems, maxItems } = { ...resolve(node), ...node };
  const limits = [range(minimum, maximum, ''), range(minItems, maxItems, ' entries')].filter((text) => text !== '');
  return [description, ...limits].filter((text) => text !== '').join(' ');
}

function range(least: number | undefined, most: number | undefined, of: string): string {
  if (least !== undefined && most !== undefined) return least === most ? `Exactly ${least}${of}.` : `${least} to ${most}${of}.`;
  if (most !== undefined) return `At most ${most}${of}.`;
  return least === undefined ? '' : `At least ${least}${of}.`;
}

/** Plain text in which `backticks` are code. */
export function prose(text: string): Markup {
  const parts: Fragment[] = text.split('`').map((part, index) => (index % 2 === 1 ? html`<code>${part}</code>` : part));
  return html`${parts}`;
}
