/** What OpenAI refuses of numbers, lengths, names and strict schemas, at both of its text endpoints. */
import { isArray, isObject, type JsonObject, type JsonValue, listOf, numberOf, objectOf, stringOf } from './json.ts';
import { VendorError } from './vendor-error.ts';

export function refuse(message: string, param: string | null, code: string | null = null, status = 400): never {
  throw new VendorError(status, message, { param, code });
}

interface Range {
  readonly least?: number;
  readonly most?: number;
  readonly kind: 'integer' | 'decimal';
}

const decimal = (least: number, most: number): Range => ({ least, most, kind: 'decimal' });
const integer = (least: number, most?: number): Range => ({ least, kind: 'integer', ...(most === undefined ? {} : { most }) });

export const CHAT_RANGES: Readonly<Record<string, Range>> = {
  temperature: decimal(0, 2),
  top_p: decimal(0, 1),
  presence_penalty: decimal(-2, 2),
  frequency_penalty: decimal(-2, 2),
  n: integer(1, 128),
  max_tokens: integer(1),
  max_completion_tokens: integer(1),
  top_logprobs: integer(0, 20),
};

export const RESPONSES_RANGES: Readonly<Record<string, Range>> = {
  temperature: decimal(0, 2),
  top_p: decimal(0, 1),
  max_output_tokens: integer(16),
  max_tool_calls: integer(1),
  top_logprobs: integer(0, 20),
};

export function checkRanges(body: JsonObject, ranges: Readonly<Record<string, Range>>): void {
  for (const [member, { least, most, kind }] of Object.entries(ranges)) {
    const value = body[member];
    if (value === undefined || value === null) continue;
    const number = numberOf(value);
    if (number === undefined || (kind === 'integer' && !Number.isInteger(number)))
      refuse(
        `Invalid type for '${member}': expected ${kind === 'integer' ? 'an integer' : 'a decimal'}.`,
        member,
        'invalid_type',
      );
    const wrong = (side: string, rule: string, code: string): never =>
      refuse(`Invalid '${member}': ${kind} ${side} value. Expected a value ${rule}, but got ${number} instead.`, member, code);
    if (least !== undefined && number < least) wrong('below minimum', `>= ${least}`, `${kind}_below_min_value`);
    if (most !== undefined && number > most) wrong('above maximum', `<= ${most}`, `${kind}_above_max_value`);
  }
}

/** Ids and names that are handed through: longer ones are refused. */
export function checkLength(value: JsonValue | undefined, most: number, param: string): void {
  if (typeof value !== 'string' || value.length <= most) return;
  refuse(
    `Invalid '${param}': string too long. Expected a string with maximum length ${most}, but got a string with length ${value.length} instead.`,
    param,
    'string_above_max_length',
  );
}

/** Members that both endpoints have. */
export function checkShared(body: JsonObject): void {
  for (const member of ['user', 'safety_identifier', 'prompt_cache_key']) checkLength(body[member], 64, member);
  const pairs = Object.entries(objectOf(body.metadata));
  if (pairs.length > 16)
    refuse(`Invalid 'metadata': too many properties. Expected an object with at most 16 properties.`, 'metadata');
  for (const [key, value] of pairs) {
    checkLength(key, 64, `metadata`);
    if (typeof value !== 'string')
      refuse(`Invalid type for 'metadata.${key}': expected a string.`, `metadata.${key}`, 'invalid_type');
    checkLength(value, 512, `metadata.${key}`);
  }
  if (listOf(body.tools).length > 128)
    refuse("Invalid 'tools': array too long. Expected an array with maximum length 128.", 'tools', 'array_above_max_length');
}

export function checkName(name: JsonValue | undefined, param: string): void {
  if (typeof name !== 'string' || name === '')
    refuse(`Missing required parameter: '${param}'.`, param, 'missing_required_parameter');
  if (!/^[a-zA-Z0-9_-]+$/.test(name)) {
    refuse(
      `Invalid '${param}': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.`,
      param,
      'invalid_value',
    );
  }
  checkLength(name, 64, param);
}

interface Format {
  /** Flat at responses, `response_format.json_schema` at chat. */
  readonly said: JsonObject;
  readonly at: string;
  /** The words that the model reads, where a JSON object without a schema has to be asked for. */
  readonly read: string;
  readonly type: JsonValue | undefined;
}

export function checkFormat({ said, at, read, type }: Format): void {
  if (type === 'json_object' && !/json/i.test(read)) {
    refuse(`'messages' must contain the word 'json' in some form, to use '${at}' of type 'json_object'.`, at);
  }
  if (type !== 'json_schema') return;
  checkName(said.name, `${at}.name`);
  if (!isObject(said.schema)) refuse(`Missing required parameter: '${at}.schema'.`, `${at}.schema`, 'missing_required_parameter');
  if (said.strict === true) checkStrict(said.schema, { what: `response_format '${stringOf(said.name)}'`, param: at });
}

interface Strict {
  /** What the message calls the schema's owner. */
  readonly what: string;
  readonly param: string;
}

/** The parameters of a function, which are an object's whether they are strict or not. */
export function checkParameters({ name, parameters, strict }: JsonObject, param: string): void {
  const owner = { what: `function '${stringOf(name)}'`, param };
  if (parameters === undefined || parameters === null) return;
  const { type } = objectOf(parameters);
  if (type !== 'object')
    wrongSchema(owner, [], `schema must be a JSON Schema of 'type: "object"', got 'type: ${JSON.stringify(type) ?? 'None'}'`);
  if (strict === true) checkStrict(objectOf(parameters), owner);
}

const NOT_PERMITTED = [
  ...['allOf', 'oneOf', 'not', 'if', 'then', 'else', 'dependentRequired', 'dependentSchemas', 'patternProperties'],
  ...['propertyNames', 'unevaluatedProperties', 'unevaluatedItems', 'contains', 'minContains', 'maxContains', 'uniqueItems'],
];
const MAX_DEPTH = 10;

function checkStrict(schema: JsonObject, owner: Strict): void {
  if (schema.type !== 'object') wrongSchema(owner, [], `schema must be a JSON Schema of 'type: "object"'`);
  if (schema.anyOf !== undefined) wrongSchema(owner, [], "'anyOf' is not permitted at the root");
  checkStrictly(schema, owner, [], 0);
}

function checkStrictly(value: JsonValue | undefined, owner: Strict, at: readonly string[], depth: number): void {
  if (!isObject(value)) wrongSchema(owner, at, 'schema must be an object');
  if (depth > MAX_DEPTH) wrongSchema(owner, at, `schema exceeds the maximum nesting of ${MAX_DEPTH} levels`);
  for (const word of NOT_PERMITTED) if (value[word] !== undefined) wrongSchema(owner, at, `'${word}' is not permitted`);
  if (value.type === undefined && !['$ref', 'anyOf', 'enum', 'const'].some((word) => value[word] !== undefined))
    wrongSchema(owner, at, "schema must have a 'type' key");
  const isOfObjects = value.type === 'object' || (isArray(value.type) && value.type.includes('object'));
  if (isOfObjects) {
    if (value.additionalProperties !== false)
      wrongSchema(owner, at, "'additionalProperties' is required to be supplied and to be false");
    const required = new Set(listOf(value.required));
    const names = Object.keys(objectOf(value.properties));
    for (const name of names) {
      if (required.has(name)) continue;
      wrongSchema(
        owner,
        at,
        `'required' is required to be supplied and to be an array including every key in properties. Missing '${name}'`,
      );
    }
    if (required.size > names.length) wrongSchema(owner, at, "'required' names a key that is not in properties");
  }
  if (value.type === 'array' && value.items === undefined) wrongSchema(owner, at, 'array schema missing items');
  for (const holder of ['properties', '$defs', 'definitions']) {
    for (const [name, child] of Object.entries(objectOf(value[holder])))
      checkStrictly(child, owner, [...at, holder, name], holder === 'properties' ? depth + 1 : 0);
  }
  if (value.items !== undefined) checkStrictly(value.items, owner, [...at, 'items'], depth + 1);
  listOf(value.anyOf).forEach((child, index) => {
    checkStrictly(child, owner, [...at, 'anyOf', String(index)], depth);
  });
}

function wrongSchema({ what, param }: Strict, at: readonly string[], why: string): never {
  const context = at.length === 0 ? '()' : `(${at.map((step) => `'${step}'`).join(', ')})`;
  refuse(
    `Invalid schema for ${what}: In context=${context}, ${why}.`,
    param,
    param.startsWith('tools') ? 'invalid_function_parameters' : 'invalid_json_schema',
  );
}
