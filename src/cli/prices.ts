/**
 * `mizu prices …`: a public catalogue, supplied by the operator, as the `models` section of our configuration, and where the
 * configured prices differ from it. Fetches nothing.
 */
import { type Static, Type } from 'typebox';
import { formatUsd } from '../store/money.ts';
import { readLiteLlm } from '../store/litellm-prices.ts';
import { readModelsDev } from '../store/models-dev-prices.ts';
import type { PriceBook } from '../store/price-book.ts';
import { productText } from '../store/multiplier.ts';
import type { Rates, TierRates } from '../store/prices.ts';
import type { JsonObject } from '../codecs/canonical/json.ts';
import type { Config } from '../http/config/config.ts';
import { type PricedEntry, withPrices } from '../http/config/priced-models.ts';
import { RefusedError } from '../http/admin/refusals.ts';
import { type Verb, type VerbContext, verb } from './verb.ts';

const FORMATS: Readonly<Record<'litellm' | 'models.dev', (text: string) => PriceBook>> = {
  litellm: readLiteLlm,
  'models.dev': readModelsDev,
};

const BOOK = {
  file: Type.String(),
  from: Type.Union([Type.Literal('litellm'), Type.Literal('models.dev')]),
  models: Type.Optional(Type.Array(Type.String())),
};
const closed = { additionalProperties: false } as const;
const Book = Type.Object(BOOK, closed);
const Import = Type.Object({ ...BOOK, write: Type.Optional(Type.Boolean()) }, closed);

function readBook(context: VerbContext, { file, from }: Static<typeof Book>): PriceBook {
  const text = context.readFile(file);
  try {
    const book = FORMATS[from](text);
    if (book.prices.size === 0 && book.skipped.length === 0)
      throw new RefusedError(`${file} holds no model as ${from} writes them`);
    return book;
  } catch (error) {
    if (error instanceof SyntaxError) throw new RefusedError(`${file} is not valid JSON: ${error.message}`);
    throw error;
  }
}

interface Imported extends Pick<PriceBook, 'skipped' | 'ignored'> {
  /** The `models` section of a configuration. */
  readonly models: Readonly<Record<string, JsonObject>>;
  readonly written?: Written;
}

/** What `--write` changed. */
interface Written {
  readonly file: string;
  /** Models that the configuration did not have, or had without a price. */
  readonly added: readonly string[];
  readonly differences: readonly Deviation[];
}

async function importBook(context: VerbContext, options: Static<typeof Import>): Promise<Imported> {
  const book = readBook(context, options);
  const { models: wanted } = options;
  const missing = (wanted ?? []).filter((name) => !book.prices.has(name));
  if (missing.length > 0) {
    const why = missing.map((name) => {
      const skipped = book.skipped.find(({ model }) => model === name);
      return skipped === undefined ? `${name} is not in the file` : `${name}: ${skipped.reason}`;
    });
    throw new RefusedError((name) => `${name('models')} ${why.join('; ')}`, 'invalid');
  }
  const names = wanted ?? [...book.prices.keys()];
  const chosen = new Set(names);
  const models = Object.fromEntries(
    names.flatMap((name) => {
      const found = book.prices.get(name);
      if (found === undefined) return [];
      return [[name, { ...(found.kind === 'text' ? {} : { kind: found.kind }), price: found.price }] as const];
    }),
  );
  return {
    models,
    skipped: book.skipped,
    ignored: book.ignored.filter(({ model }) => chosen.has(model)),
    ...(options.write === true ? { written: writeBook(context, book, models) } : {}),
  };
}

/** Writes the prices that differ from those of the configuration. Throws RefusedError where a model is of another kind there. */
function writeBook(context: VerbContext, book: PriceBook, models: Imported['models']): Written {
  const config = context.config();
  const added: string[] = [];
  const differences: Deviation[] = [];
  const entries: PricedEntry[] = [];
  for (const [name, whole] of Object.entries(models)) {
    const found = book.prices.get(name);
    if (found === undefined) continue;
    const ours = config.models.get(name);
    if (ours !== undefined && book.hasKinds && ours.kind !== found.kind)
      throw new RefusedError(`${name} is of the kind ${ours.kind} in the configuration, and ${found.kind} in the catalogue`);
    const differing = ours?.rates === undefined ? undefined : compare({ name, rates: ours.rates }, name, found.rates);
    if (differing?.length === 0) continue;
    if (differing === undefined) added.push(name);
    else differences.push(...differing);
    entries.push({ name, whole, price: found.price });
  }
  return { file: context.changeConfig((text) => withPrices(text, entries)), added, differences };
}

function writtenText({ file, added, differences }: Written): string {
  const changed = new Set(differences.map(({ model }) => model)).size;
  return [
    `${file}: ${added.length} models added, ${changed} changed`,
    ...added.map((name) => `${name}: added`),
    ...differences.map(({ model, rate, ours, theirs }) => `${model} ${rate}: ${ours ?? 'none'} -> ${theirs ?? 'none'}`),
  ].join('\n');
}

function importText({ models, skipped, ignored, written }: Imported, { models: wanted }: Static<typeof Import>): string {
  if (written !== undefined) return writtenText(written);
  const count = wanted?.length ?? Object.keys(models).length;
  const head = [
    `// ${count} models; ${skipped.length} without a price of ours, ${ignored.length} prices that have no place here (--json names them)`,
    ...(wanted === undefined ? [] : ignored.map(({ model, field, reason }) => `// ${model} ${field}: ${reason}`)),
  ];
  return [...head, JSON.stringify({ models }, null, 2)].join('\n');
}

interface Deviation {
  readonly model: string;
  /** Its name in the catalogue; absent: it is not there. */
  readonly entry?: string;
  readonly rate?: string;
  readonly ours?: string;
  readonly theirs?: string;
}

interface Priced {
  readonly name: string;
  readonly rates: Rates;
}

interface Checked {
  /** How many models were compared. */
  readonly checked: number;
  readonly differences: readonly Deviation[];
}

async function checkBook(context: VerbContext, options: Static<typeof Book>): Promise<Checked> {
  const book = readBook(context, options);
  const config = context.config();
  const { models: only } = options;
  const unknown = (only ?? []).filter((name) => !config.models.has(name));
  if (unknown.length > 0)
    throw new RefusedError((name) => `${name('models')} ${unknown.join(', ')}: no such model in the configuration`, 'invalid');
  const priced = [...config.models.values()].flatMap(({ name, rates }) =>
    rates !== undefined && (only?.includes(name) ?? true) ? [{ name, rates }] : [],
  );
  return { checked: priced.length, differences: priced.flatMap((model) => deviationsOf(config, model, book)) };
}

function checkText({ checked, differences }: Checked): string {
  if (differences.length === 0) return `${checked} priced models, no difference`;
  return differences
    .map(({ model, entry, rate, ours, theirs }) =>
      entry === undefined
        ? `${model}: not in the catalogue`
        : `${model} ${rate}: ours ${ours ?? 'none'}, ${entry} ${theirs ?? 'none'}`,
    )
    .join('\n');
}

/**
 * Against the catalogue's entry of the same name (ours, or what a Channel calls it), the one that differs least where several
 * fit.
 */
function deviationsOf(config: Config, model: Priced, book: PriceBook): Deviation[] {
  const names = new Set([model.name]);
  for (const { models } of config.channels) {
    const upstream = models.get(model.name);
    if (upstream !== undefined) names.add(upstream);
  }
  let best: Deviation[] | undefined;
  for (const [entry, { rates }] of book.prices) {
    if (!names.has(entry) && !names.has(entry.slice(entry.indexOf('/') + 1))) continue;
    const found = compare(model, entry, rates);
    if (best === undefined || found.length < best.length) best = found;
  }
  return best ?? [{ model: model.name }];
}

function compare(model: Priced, entry: string, rates: Rates): Deviation[] {
  const ours = flatten(model.rates);
  const theirs = flatten(rates);
  const deviations: Deviation[] = [];
  for (const rate of new Set([...ours.keys(), ...theirs.keys()])) {
    const [mine, other] = [ours.get(rate), theirs.get(rate)];
    if (mine === other) continue;
    deviations.push({
      model: model.name,
      entry,
      rate,
      ...(mine === undefined ? {} : { ours: mine }),
      ...(other === undefined ? {} : { theirs: other }),
    });
  }
  return deviations;
}

/** Every rate under its path, as decimal US dollars: two spellings of one amount are equal. */
function flatten(rates: Rates): Map<string, string> {
  const flat = new Map<string, string>();
  const add = (table: TierRates, path: string): void => {
    for (const part of [table.tokens, table.pieces, table.meters]) {
      for (const [name, nanos] of part) flat.set(path + name, formatUsd(nanos));
    }
    if (table.longContext === undefined) return;
    flat.set(`${path}long_context.above`, String(table.longContext.above));
    add(table.longContext, `${path}long_context.`);
  };
  add(rates, '');
  const modifiers = { service_tiers: rates.serviceTiers, speeds: rates.speeds ?? [], geos: rates.geos ?? [] };
  for (const [kind, named] of Object.entries(modifiers)) {
    for (const [name, modifier] of named) {
      if ('multiplier' in modifier) flat.set(`${kind}.${name}`, `${productText([modifier.multiplier])} times`);
      else add(modifier, `${kind}.${name}.`);
    }
  }
  return flat;
}

export const PRICES: readonly Verb[] = [
  verb({
    name: 'prices import',
    usage: 'import --from litellm|models.dev FILE [--models A,B] [--write]',
    does: 'Prices of a catalogue as configuration. `--write`: into the configuration file, which then stays valid or as it was.',
    options: Import,
    arguments: ['file'],
    run: importBook,
    text: importText,
  }),
  verb({
    name: 'prices check',
    usage: 'check --from litellm|models.dev FILE [--models A,B]',
    does: 'Compares the prices of the configuration with a catalogue. Exit code 1 where they differ.',
    options: Book,
    arguments: ['file'],
    run: checkBook,
    text: checkText,
    // When a price differs or a priced model is not in the catalogue.
    code: ({ differences }) => (differences.length === 0 ? 0 : 1),
  }),
];
