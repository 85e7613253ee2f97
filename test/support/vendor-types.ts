/**
 * The types of the vendors' own SDKs, read by the compiler from their declaration files: as shapes that values are checked
 * against, and as the names that they hold (events, items, reasons, members). The compiler's API is a preview: its version is
 * pinned in package.json.
 */
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import {
  API,
  type Checker,
  type Project,
  SymbolFlags,
  type Symbol as TypeSymbol,
  type Type,
  TypeFlags,
} from 'typescript/unstable/sync';

/** A type as far as JSON can hold it. */
export type Shape =
  | { readonly kind: 'any' | 'string' | 'number' | 'boolean' | 'null' | 'never' }
  | { readonly kind: 'literal'; readonly value: string | number | boolean }
  | { readonly kind: 'array'; readonly of: Shape }
  | { readonly kind: 'union'; readonly of: readonly Shape[] }
  | { readonly kind: 'object'; readonly members: ReadonlyMap<string, Member>; readonly rest?: Shape };

export interface Member {
  readonly shape: Shape;
  readonly isOptional: boolean;
}

const ROOT = dirname(createRequire(import.meta.url).resolve('../../package.json'));

/** Declaration files below node_modules, by the name that tests use for them. */
const FILES = {
  chat: 'openai/resources/chat/completions/completions.d.ts',
  completions: 'openai/resources/completions.d.ts',
  responses: 'openai/resources/responses/responses.d.ts',
  openaiModels: 'openai/resources/models.d.ts',
  openaiErrors: 'openai/resources/shared.d.ts',
  embeddings: 'openai/resources/embeddings.d.ts',
  images: 'openai/resources/images.d.ts',
  messages: '@anthropic-ai/sdk/resources/messages/messages.d.ts',
  betaMessages: '@anthropic-ai/sdk/resources/beta/messages/messages.d.ts',
  anthropicModels: '@anthropic-ai/sdk/resources/models.d.ts',
  anthropicErrors: '@anthropic-ai/sdk/resources/shared.d.ts',
  gemini: '@google/genai/dist/genai.d.ts',
} as const;
export type VendorFile = keyof typeof FILES;

/** Reads types by file and name. Close it: it runs a compiler. */
export class VendorTypes implements Disposable {
  readonly #api: API;
  readonly #project: Project;
  readonly #shapes = new Map<number, Shape>();

  constructor() {
    this.#api = new API({ cwd: ROOT });
    const files = Object.values(FILES).map((file) => join(ROOT, 'node_modules', file));
    const snapshot = this.#api.updateSnapshot({ openFiles: files });
    const project = snapshot.getDefaultProjectForFile(files[0] ?? '');
    if (project === undefined) throw new Error('the compiler opened no project');
    this.#project = project;
  }

  [Symbol.dispose](): void {
    this.#api.close();
  }

  get #checker(): Checker {
    return this.#project.checker;
  }

  /** `name`: an exported type; `Outer.Inner` for one in a namespace. Throws where there is none. */
  shape(file: VendorFile, name: string): Shape {
    return this.#shapeOf(this.#checker.getDeclaredTypeOfSymbol(this.#symbol(file, name)));
  }

  /** The values of an exported enumeration, such as those of `@google/genai`. */
  enumValues(file: VendorFile, name: string): string[] {
    const shape = this.shape(file, name);
    return [...literalsOf(shape)].map(String);
  }

  #symbol(file: VendorFile, name: string): TypeSymbol {
    const path = join(ROOT, 'node_modules', FILES[file]);
    const source = this.#project.program.getSourceFile(path);
    if (source === undefined) throw new Error(`${FILES[file]} was not read`);
    const [first = '', ...rest] = name.split('.');
    const module = this.#checker.getSymbolAtLocation(source);
    let found = module === undefined ? undefined : this.#checker.getMemberInModuleExports(module, first);
    for (const part of rest) found = found?.getExports().get(part as never);
    if (found === undefined) throw new Error(`${FILES[file]} has no ${name}`);
    return (found.flags & SymbolFlags.Alias) === 0 ? found : this.#checker.getAliasedSymbol(found);
  }

  #shapeOf(type: Type): Shape {
    const known = this.#shapes.get(type.id);
    if (known !== undefined) return known;
    const { flags } = type;
    const primitive = PRIMITIVES.find(([flag]) => (flags & flag) !== 0)?.[1];
    if (primitive !== undefined) return { kind: primitive };
    if (type.isStringLiteralType() || type.isNumberLiteralType() || type.isBooleanLiteralType())
      return { kind: 'literal', value: type.value };
    if (type.isUnionType()) return this.#union(type.id, type.getTypes());
    if (type.isIntersectionType()) return this.#intersection(type.getTypes());
    if (this.#checker.isArrayType(type) && type.isTypeReference()) {
      const [of] = this.#checker.getTypeArguments(type);
      return { kind: 'array', of: of === undefined ? ANY : this.#shapeOf(of) };
    }
    if (type.isObjectType()) return this.#object(type);
    return ANY;
  }

  /** Noted before its parts are read, since types name themselves. */
  #union(id: number, types: readonly Type[]): Shape {
    const of: Shape[] = [];
    const union = { kind: 'union', of } as const;
    this.#shapes.set(id, union);
    for (const part of types) if ((part.flags & TypeFlags.Undefined) === 0) of.push(this.#shapeOf(part));
    return union;
  }

  /** `string & {}` is a string; objects are put together. */
  #intersection(types: readonly Type[]): Shape {
    const parts = types.map((part) => this.#shapeOf(part));
    const primitive = parts.find(({ kind }) => kind !== 'object' && kind !== 'any');
    if (primitive !== undefined) return primitive;
    const members = new Map<string, Member>();
    for (const part of parts) if (part.kind === 'object') for (const [name, member] of part.members) members.set(name, member);
    return { kind: 'object', members };
  }

  #object(type: Type): Shape {
    const members = new Map<string, Member>();
    const index = this.#checker.getIndexInfosOfType(type);
    const object: { kind: 'object'; members: Map<string, Member>; rest?: Shape } = { kind: 'object', members };
    this.#shapes.set(type.id, object);
    if (this.#checker.getSignaturesOfType(type, 0).length > 0) return NEVER;
    for (const property of this.#checker.getPropertiesOfType(type)) {
      const of = this.#checker.getTypeOfSymbol(property);
      if (of === undefined || (property.flags & SymbolFlags.Method) !== 0) continue;
      const isOptional = (property.flags & SymbolFlags.Optional) !== 0;
      const shape = this.#shapeOf(of);
      // A function is no part of what is sent.
      if (shape.kind !== 'never' || (of.flags & TypeFlags.Never) !== 0) members.set(property.name, { shape, isOptional });
    }
    const [rest] = index;
    if (rest !== undefined) object.rest = this.#shapeOf(rest.valueType);
    return object;
  }
}

const ANY: Shape = { kind: 'any' };
const NEVER: Shape = { kind: 'never' };

const PRIMITIVES = [
  [TypeFlags.Any, 'any'],
  [TypeFlags.Unknown, 'any'],
  [TypeFlags.String, 'string'],
  [TypeFlags.Number, 'number'],
  [TypeFlags.Boolean, 'boolean'],
  [TypeFlags.Null, 'null'],
  [TypeFlags.Never, 'never'],
] as const;

/** The literal values of a shape, and of the parts of a union. */
export function literalsOf(shape: Shape | undefined): Set<string | number | boolean> {
  if (shape?.kind === 'literal') return new Set([shape.value]);
  if (shape?.kind !== 'union') return new Set();
  return new Set(shape.of.flatMap((part) => [...literalsOf(part)]));
}

/** The objects of a shape: itself, or the parts of a union or of an array. */
export function objectsOf(shape: Shape | undefined): (Shape & { readonly kind: 'object' })[] {
  if (shape?.kind === 'object') return [shape];
  if (shape?.kind === 'array') return objectsOf(shape.of);
  return shape?.kind === 'union' ? shape.of.flatMap(objectsOf) : [];
}

/** The shape at a path of member names, through unions and arrays; undefined where no part has it. */
export function shapeAt(shape: Shape | undefined, ...path: readonly string[]): Shape | undefined {
  const [name, ...rest] = path;
  if (name === undefined) return shape;
  const found = objectsOf(shape).flatMap(({ members }) => {
    const member = members.get(name);
    return member === undefined ? [] : [member.shape];
  });
  return found.length === 0 ? undefined : shapeAt(found.length === 1 ? found[0] : { kind: 'union', of: found }, ...rest);
}

/** The names of all members of an object, or of the objects of a union. */
export function memberNames(shape: Shape | undefined): Set<string> {
  return new Set(objectsOf(shape).flatMap(({ members }) => [...members.keys()]));
}

/**
 * What of `value` is not of the shape, each with its path; nothing for a value that fits. Members that the shape does not know
 * are allowed.
 */
export function misfits(value: unknown, shape: Shape, path = ''): string[] {
  switch (shape.kind) {
    case 'any':
      return [];
    case 'never':
      return [`${path}: may not be there`];
    case 'null':
      return value === null ? [] : [`${path}: ${show(value)} is not null`];
    case 'string':
    case 'number':
    case 'boolean':
      return typeof value === shape.kind ? [] : [`${path}: ${show(value)} is no ${shape.kind}`];
    case 'literal':
      return value === shape.value ? [] : [`${path}: ${show(value)} is not ${show(shape.value)}`];
    case 'array':
      if (!Array.isArray(value)) return [`${path}: ${show(value)} is no array`];
      return value.flatMap((entry, at) => misfits(entry, shape.of, `${path}[${at}]`));
    case 'union':
      return bestOf(value, shape.of, path);
    case 'object':
      return memberMisfits(value, shape, path);
  }
}

function memberMisfits(value: unknown, { members, rest }: Shape & { kind: 'object' }, path: string): string[] {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return [`${path}: ${show(value)} is no object`];
  const given = new Map<string, unknown>(Object.entries(value));
  const wrong: string[] = [];
  for (const [name, { shape, isOptional }] of members) {
    const member = given.get(name);
    if (member !== undefined) wrong.push(...misfits(member, shape, `${path}.${name}`));
    else if (!isOptional && shape.kind !== 'any') wrong.push(`${path}.${name}: is missing`);
  }
  if (rest === undefined) return wrong;
  for (const [name, member] of given) if (!members.has(name)) wrong.push(...misfits(member, rest, `${path}.${name}`));
  return wrong;
}

/** The misfits of the part that fits best: by its literal members first, since they tell which part is meant. */
function bestOf(value: unknown, parts: readonly Shape[], path: string): string[] {
  let best: { readonly wrong: string[]; readonly isMeant: boolean } | undefined;
  for (const part of parts) {
    const wrong = misfits(value, part, path);
    if (wrong.length === 0) return wrong;
    const isMeant = isMeantBy(value, part);
    if (best === undefined || (isMeant && !best.isMeant) || (isMeant === best.isMeant && wrong.length < best.wrong.length))
      best = { wrong, isMeant };
  }
  return best === undefined ? [] : best.isMeant ? best.wrong : [`${path}: ${show(value)} is none of ${parts.length} types`];
}

function isMeantBy(value: unknown, part: Shape): boolean {
  if (part.kind === 'array') return Array.isArray(value);
  if (part.kind === 'union') return part.of.some((one) => isMeantBy(value, one));
  if (part.kind !== 'object' || typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  const discriminants = [...part.members].filter(([name]) => name === 'type' || name === 'object' || name === 'role');
  return discriminants.every(([name, { shape, isOptional }]) => {
    const given: unknown = Reflect.get(value, name);
    return (given === undefined && isOptional) || misfits(given, shape).length === 0;
  });
}

function show(value: unknown): string {
  const text = JSON.stringify(value) ?? 'undefined';
  return text.length > 120 ? `${text.slice(0, 120)}…` : text;
}
