/** Checks `provider_options` against a Channel's own list: an option that it does not have, or of another type, is a 400. */
import { invalid } from '../canonical/error.ts';
import type { JsonObject, JsonValue } from '../canonical/json.ts';
import { isObject } from '../canonical/json.ts';

export interface OptionRule {
  readonly is: string;
  readonly test: (value: JsonValue) => boolean;
}

export const boolean: OptionRule = { is: 'a boolean', test: (value) => typeof value === 'boolean' };
export const object: OptionRule = { is: 'an object', test: (value) => isObject(value) };
export const integer = (min: number, max: number): OptionRule => ({
  is: `an integer from ${min} to ${max}`,
  test: (value) => typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max,
});
export const oneOf = (...values: readonly string[]): OptionRule => ({
  is: `one of ${values.join(', ')}`,
  test: (value) => typeof value === 'string' && values.includes(value),
});

/** Throws `invalid_request` naming the option. */
export function checkProviderOptions(options: JsonObject, rules: ReadonlyMap<string, OptionRule>): void {
  for (const [name, value] of Object.entries(options)) {
    const rule = rules.get(name);
    const at = `provider_options.${name}`;
    if (rule === undefined)
      throw invalid(at, `This model's Channel has no option ${JSON.stringify(name)} (it has ${[...rules.keys()].join(', ')}).`);
    if (value === undefined || !rule.test(value)) throw invalid(at, `${at} must be ${rule.is}.`);
  }
}
