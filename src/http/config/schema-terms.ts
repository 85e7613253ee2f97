/** Building blocks of the configuration's schema, and the types of what it describes once the defaults are filled in. */
import { type Static, type TObject, type TSchema, Type } from 'typebox';

export const closed = { additionalProperties: false } as const;

/** A key that may be left out, with the value that it then has: a default is written here and nowhere else. */
export function withDefault<Schema extends TSchema, Value extends Static<Schema>>(schema: Schema, value: Value) {
  return Object.assign(Type.Optional(schema), { default: value });
}

/** A section whose keys all have defaults, or may be missing. */
export function section<Schema extends TObject>(schema: Schema) {
  return Object.assign(Type.Optional(schema), { default: {} });
}

export const Milliseconds = (description: string, fallback: number) =>
  withDefault(Type.Integer({ minimum: 1, maximum: 86_400_000, description }), fallback);
export const Text = (description: string) => Type.String({ minLength: 1, description });

/** The name of a header, as a pattern. */
export const HeaderName = "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$";

/** What a value of the schema is when every default is filled in. */
export type Filled<Schema> = Schema extends { readonly '~kind': 'Object'; readonly properties: infer Keys }
  ? { readonly [Key in keyof Keys as IsThere<Keys[Key]> extends true ? Key : never]: Filled<Keys[Key]> } & {
      readonly [Key in keyof Keys as IsThere<Keys[Key]> extends true ? never : Key]?: Filled<Keys[Key]>;
    }
  : Schema extends TSchema
    ? Static<Schema>
    : never;
type IsThere<Schema> = Schema extends { readonly default: unknown }
  ? true
  : Schema extends { readonly '~optional': true }
    ? false
    : true;

type CamelName<Name> = Name extends `${infer Word}_${infer Rest}` ? `${Word}${Capitalize<CamelName<Rest>>}` : Name;
/** The same keys as code spells them: `max_retry_wait_ms` is `maxRetryWaitMs`. */
export type Camel<Value> = { readonly [Key in keyof Value as CamelName<Key>]: Value[Key] };

/** Renames the keys of one object; what they hold stays as it is. */
export function camelKeys<Value extends object>(value: Value): Camel<Value>;
export function camelKeys(value: object): object {
  const camel = (name: string): string => name.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
  return Object.fromEntries(Object.entries(value).map(([name, held]) => [camel(name), held]));
}
