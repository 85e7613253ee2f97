/**
 * The members that the image endpoints know, with what they must be. One table for JSON and for forms, whose values are all text:
 * only the numbers and booleans named here are read as such. Unknown members are kept as they came.
 */
import { invalid } from '../canonical/error.ts';
import type { JsonValue } from '../canonical/json.ts';
import { isGatewayMember } from '../requests/members.ts';
import type { ImageOperation, ImageRequest } from './request.ts';

type Check = (value: JsonValue, at: string) => void;

const text: Check = (value, at) => {
  if (typeof value !== 'string') throw invalid(at, `${at} must be a string.`);
};
const oneOf =
  (...allowed: readonly string[]): Check =>
  (value, at) => {
    if (typeof value !== 'string' || !allowed.includes(value)) throw invalid(at, `${at} must be one of ${allowed.join(', ')}.`);
  };
const integer =
  (min: number, max: number): Check =>
  (value, at) => {
    if (typeof value !== 'number' || !Number.isInteger(value) || value < min || value > max) {
      throw invalid(at, `${at} must be an integer from ${min} to ${max}.`);
    }
  };
const boolean: Check = (value, at) => {
  if (typeof value !== 'boolean') throw invalid(at, `${at} must be a boolean.`);
};

const MAX_COUNT = 10;

const CHECKS: ReadonlyMap<string, Check> = new Map([
  ['n', integer(1, MAX_COUNT)],
  ['stream', boolean],
  ['size', text],
  ['quality', text],
  ['background', text],
  ['output_format', text],
  ['output_compression', integer(0, 100)],
  ['moderation', text],
  ['input_fidelity', text],
  ['style', text],
  ['response_format', oneOf('url', 'b64_json')],
  ['partial_images', integer(0, 3)],
  ['user', text],
  ['safety_identifier', text],
]);

/** Members whose values in a form are numbers or booleans. */
const FORM_NUMBERS: ReadonlySet<string> = new Set(['n', 'output_compression', 'partial_images', 'seed']);
const FORM_BOOLEANS: ReadonlySet<string> = new Set(['stream']);

/** Never previewed (spec, image rule 2). */
const PREVIEWS = 'partial_images';
/** Said by fields of their own. */
const NOT_PARAMETERS: ReadonlySet<string> = new Set(['model', 'prompt', 'n', 'stream']);
/** What an edit has in fields of their own; no generation knows them. */
const OF_EDITS: ReadonlySet<string> = new Set(['images', 'mask']);

/**
 * A form's text as the JSON value that it stands for. Text that is no number of the right kind stays text, and is then refused.
 */
export function fromForm(name: string, value: string): JsonValue {
  if (FORM_NUMBERS.has(name) && /^-?\d{1,15}$/.test(value)) return Number(value);
  // `True` is how Python writes it where no SDK does.
  if (FORM_BOOLEANS.has(name) && /^(true|false)$/i.test(value)) return value.toLowerCase() === 'true';
  return value;
}

export type Fields = Pick<
  ImageRequest,
  'operation' | 'model' | 'prompt' | 'count' | 'countGiven' | 'stream' | 'parameters' | 'unsent'
>;

/** Checks every member that is not an image. Throws a 400 that names the member. */
export function readFields(operation: ImageOperation, members: ReadonlyMap<string, JsonValue>): Fields {
  for (const [name, check] of CHECKS) {
    const value = members.get(name);
    if (value !== undefined && value !== null) check(value, name);
  }
  const count = members.get('n') ?? undefined;
  const stream = members.get('stream') === true;
  if (stream && count !== undefined && count !== 1) throw invalid('n', 'n must be 1 with stream: true.');
  const parameters = new Map<string, JsonValue>();
  const unsent: string[] = [];
  for (const [name, value] of members) {
    if (name === PREVIEWS || isGatewayMember(name) || isOtherSpelling(name)) unsent.push(name);
    else if (value !== null && !NOT_PARAMETERS.has(name) && !(operation === 'edit' && OF_EDITS.has(name)))
      parameters.set(name, value);
  }
  return {
    operation,
    model: needed(members, 'model'),
    prompt: needed(members, 'prompt'),
    count: typeof count === 'number' ? count : 1,
    countGiven: count !== undefined,
    stream,
    parameters,
    unsent,
  };
}

/**
 * Of what decides how many pictures are drawn, and of what: servers written in Go read `N` as `n`, those that read forms as PHP
 * does `n[]`, and what they drew then would be more than was weighed.
 */
function isOtherSpelling(name: string): boolean {
  const folded = name
    .toUpperCase()
    .toLowerCase()
    .replace(/\[\d*\]$/, '');
  return folded !== name && (folded === PREVIEWS || NOT_PARAMETERS.has(folded));
}

function needed(members: ReadonlyMap<string, JsonValue>, name: string): string {
  const value = members.get(name);
  if (value === undefined || value === null) throw invalid(name, `${name} is required.`);
  if (typeof value !== 'string') throw invalid(name, `${name} must be a string.`);
  if (value.trim() === '') throw invalid(name, `${name} must not be empty.`);
  return value;
}
