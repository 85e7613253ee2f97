/** Finds the verb that was typed, reads its options and prints what it gives. */
import { type TObject, Type } from 'typebox';
import { RefusedError, InputError, type NameOf } from '../http/admin/refusals.ts';
import { jsonText } from '../http/admin/json-text.ts';
import type { Cause } from '../store/accounts.ts';
import { namesOf, optionsOf, type OptionsOf, readOptions } from './read-options.ts';
import { oneLine, UsageError, type Verb, type VerbContext } from './verb.ts';

/** What was typed: words, and options with their values. */
export interface Typed {
  readonly words: readonly string[];
  readonly values: Readonly<Record<string, string | boolean | undefined>>;
}

/** What every verb has, unless it is bare. */
const COMMON = ['config', 'json'] as const;
const CAUSE = { cause: Type.Optional(Type.String()), note: Type.Optional(Type.String()) };

/** All options of all verbs, and whether each is a flag. Throws for a name that is a flag here and none there. */
export function optionsOfAll(verbs: readonly Verb[]): Record<string, { readonly type: 'string' | 'boolean' }> {
  const all = new Map<string, 'string' | 'boolean'>([
    ['config', 'string'],
    ['json', 'boolean'],
    ...Object.keys(CAUSE).map((name) => [name, 'string'] as const),
    ['yes', 'boolean'],
  ]);
  for (const one of verbs) {
    for (const [name, type] of optionsOf(one)) {
      if ((all.get(name) ?? type) !== type) throw new Error(`the option --${name} is a flag of one verb and none of another`);
      all.set(name, type);
    }
  }
  return Object.fromEntries([...all].map(([name, type]) => [name, { type }]));
}

/** `keys` of `keys create`. */
export const familyOf = ({ name }: Verb): string => name.split(' ', 1)[0] ?? name;

/** All verbs, or those of the family that was typed, each with what it does. */
export function helpOf(verbs: readonly Verb[], family?: string): string {
  const own = verbs.filter((one) => familyOf(one) === family);
  const each = (one: Verb): string => `  ${`${familyOf(one)} ${one.usage}`.trimEnd()}\n      ${one.does}`;
  return [
    'usage: mizu VERB [--config FILE] [--json]     changes: [--cause ID] [--note TEXT]; [--yes] answers questions',
    ...(own.length > 0 ? own : verbs).map(each),
    ...(own.length > 0 ? [] : ['  help VERB', '  --version']),
  ].join('\n');
}

/**
 * The verb, and the arguments that follow it. Undefined where there is no such family. Throws UsageError where it has no such
 * verb.
 */
export function find(verbs: readonly Verb[], words: readonly string[]): { verb: Verb; args: readonly string[] } | undefined {
  const [family = '', action] = words;
  const named = verbs.find(({ name }) => name === `${family} ${action}`);
  if (named !== undefined) return { verb: named, args: words.slice(2) };
  const alone = verbs.find(({ name }) => name === family);
  if (alone !== undefined) return { verb: alone, args: words.slice(1) };
  const own = verbs.filter((one) => familyOf(one) === family);
  const meant = own.find(({ isDefault }) => isDefault);
  if (meant !== undefined && action === undefined) return { verb: meant, args: [] };
  if (own.length > 0) throw new UsageError(`${family} ${own.map(({ usage }) => usage).join(' | ')}`);
  return undefined;
}

/**
 * Resolves with the exit code. Rejects with UsageError for what makes no sense, and with RefusedError, both in words of the
 * command line.
 */
export async function perform(
  { verb, args }: { readonly verb: Verb; readonly args: readonly string[] },
  values: Typed['values'],
  context: Omit<VerbContext, 'cause'>,
  print: (text: string) => void,
): Promise<number> {
  const { isBare, changes, confirms, ...facts } = verb;
  const own = new Map(Object.entries(values).filter(([, value]) => value !== undefined));
  if (isBare && COMMON.some((name) => own.delete(name))) throw new UsageError(`${verb.name} has no --json and no --config`);
  for (const name of COMMON) own.delete(name);
  const reason = changes ? take(own, ['cause', 'note']) : {};
  const isAgreed = confirms === true && take(own, ['yes'])['yes'] === true;
  const read = <Input extends TObject>(options: Input) => {
    const typed: OptionsOf<Input> = { ...facts, options };
    return readOptions(typed, args, Object.fromEntries(own));
  };
  try {
    const confirm = isAgreed ? () => Promise.resolve() : context.confirm;
    const results = verb.perform({ ...context, confirm, cause: causeOf(reason, context.mint) }, read);
    for (;;) {
      const { done, value } = await results.next();
      if (done) return value;
      const shown = values['json'] === true ? jsonText(value.value) : value.text();
      // The line ends of a text are its own: outside text in it went through `oneLine` before.
      print(shown.split('\n').map(oneLine).join('\n'));
    }
  } catch (error) {
    throw inWords(error, namesOf(verb));
  }
}

function take(from: Map<string, unknown>, names: readonly string[]): Readonly<Record<string, unknown>> {
  const taken = Object.fromEntries(names.map((name) => [name, from.get(name)]));
  for (const name of names) from.delete(name);
  return taken;
}

/** Why a change is made, for the journal. `--cause ID` makes a command safe to repeat: the same change is done once. */
function causeOf({ cause: id, note }: Readonly<Record<string, unknown>>, mint: VerbContext['mint']): Cause {
  if (typeof id === 'string' && !/^[\x21-\x7e]{1,128}$/.test(id))
    throw new UsageError('--cause must be 1 to 128 visible ASCII characters');
  return { id: typeof id === 'string' ? id : mint('op_'), by: 'cli', ...(typeof note === 'string' ? { note } : {}) };
}

/** A refusal with the members as they are typed. */
function inWords(error: unknown, name: NameOf): unknown {
  if (error instanceof InputError) return new UsageError(error.in(name));
  return error instanceof RefusedError ? new RefusedError(error.in(name), error.kind, error.code) : error;
}
