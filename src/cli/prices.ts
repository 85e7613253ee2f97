/**
 * `mizu prices import --from litellm|models.dev FILE [--models A,B]`: a public catalogue, supplied by the operator, as the `models`
 * section of our configuration. `mizu prices check --from … FILE`: where the configured prices differ from it. Fetches nothing.
 */
import { formatUsd } from '../store/money.ts';
import { readLiteLlm } from '../store/litellm-prices.ts';
import { readModelsDev } from '../store/models-dev-prices.ts';
import type { PriceBook } from '../store/price-book.ts';
import { productText } from '../store/multiplier.ts';
import type { Rates, TierRates } from '../store/prices.ts';
import type { Config } from '../http/config/config.ts';
import { listOption } from './operator-input.ts';
import { argument, RefusedError, report, allowOnly, textOption, UsageError, type Verb, type VerbContext } from './verb.ts';

export const PRICES_USAGE = 'prices import | check --from litellm|models.dev FILE [--models A,B]';

const FORMATS: ReadonlyMap<string, (text: string) => PriceBook> = new Map([
  ['litellm', readLiteLlm],
  ['models.dev', readModelsDev],
]);

export const prices: Verb = async (context) => {
  const [action] = context.args;
  if (action !== 'import' && action !== 'check') throw new UsageError(PRICES_USAGE);
  allowOnly(context, `prices ${action}`, 1, 'from', 'models');
  const book = readBook(context);
  return action === 'import' ? importBook(context, book) : checkBook(context, book);
};

function readBook(context: VerbContext): PriceBook {
  const format = textOption(context, 'from');
  const read = FORMATS.get(format ?? '');
  if (read === undefined) throw new UsageError(`--from must be one of ${[...FORMATS.keys()].join(', ')}`);
  const path = argument(context, 1, 'FILE');
  const text = context.readFile(path);
  try {
    const book = read(text);
    if (book.prices.size === 0 && book.skipped.length === 0)
      throw new RefusedError(`${path} holds no model as ${format} writes them`);
    return book;
  } catch (error) {
    if (error instanceof SyntaxError) throw new RefusedError(`${path} is not valid JSON: ${error.message}`);
    throw error;
  }
}

function importBook(context: VerbContext, book: PriceBook): number {
  const wanted = listOption(context, 'models');
  const missing = (wanted ?? []).filter((name) => !book.prices.has(name));
  if (missing.length > 0) {
    const why = missing.map((name) => {
      const skipped = book.skipped.find(({ model }) => model === name);
      return skipped === undefined ? `${name} is not in the file` : `${name}: ${skipped.reason}`;
    });
    throw new RefusedError(`--models ${why.join('; ')}`);
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
  const ignored = book.ignored.filter(({ model }) => chosen.has(model));
  const head = [
    `// ${names.length} models; ${book.skipped.length} without a price of ours, ${ignored.length} prices that have no place here (--json names them)`,
    ...(wanted === undefined ? [] : ignored.map(({ model, field, reason }) => `// ${model} ${field}: ${reason}`)),
  ];
  report(context, { models, skipped: book.skipped, ignored }, [...head, JSON.stringify({ models }, null, 2)].join('\n'));
  return 0;
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

/** Exit code 1 when a price differs or a priced model is not in the catalogue. */
function checkBook(context: VerbContext, book: PriceBook): number {
  const config = context.config();
  const only = listOption(context, 'models');
  const unknown = (only ?? []).filter((name) => !config.models.has(name));
  if (unknown.length > 0) throw new RefusedError(`--models ${unknown.join(', ')}: no such model in the configuration`);
  const priced = [...config.models.values()].flatMap(({ name, rates }) =>
    rates !== undefined && (only?.includes(name) ?? true) ? [{ name, rates }] : [],
  );
  const deviations = priced.flatMap((model) => deviationsOf(config, model, book));
  const lines = deviations.map(({ model, entry, rate, ours, theirs }) =>
    entry === undefined
      ? `${model}: not in the catalogue`
      : `${model} ${rate}: ours ${ours ?? 'none'}, ${entry} ${theirs ?? 'none'}`,
  );
  const text = deviations.length === 0 ? `${priced.length} priced models, no difference` : lines.join('\n');
  report(context, { checked: priced.length, differences: deviations }, text);
  return deviations.length === 0 ? 0 : 1;
}

/** Against the catalogue's entry of the same name (ours, or what a Channel calls it), the one that differs least where several fit. */
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
