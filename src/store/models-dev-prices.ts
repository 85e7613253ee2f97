/** The `api.json` of models.dev: US dollars a million tokens. */
import {
  BookBuilder,
  type Draft,
  draft,
  fieldsOf,
  givenTwice,
  modifierDraft,
  type ModifierKind,
  NumberText,
  parseKeepingDigits,
  type PriceBook,
  shortestWrite,
} from './price-book.ts';

const MODELS_DEV: ReadonlyMap<string, string> = new Map([
  ['input', 'input'],
  ['output', 'output'],
  ['cache_read', 'cached_input'],
  ['cache_write', 'cache_write_5m'],
  ['reasoning', 'reasoning'],
  ['input_audio', 'audio_input'],
  ['output_audio', 'audio_output'],
]);

/** Models are named `provider/model`. Throws SyntaxError when `text` is not JSON. */
export function readModelsDev(text: string): PriceBook {
  const book = new BookBuilder(false);
  const providers = fieldsOf(parseKeepingDigits(text)) ?? [];
  const twice = givenTwice(text, 0, 2);
  for (const [provider, entry] of providers) {
    for (const [id, model] of fieldsOf(fieldsOf(entry)?.get('models')) ?? []) {
      const name = `${provider}/${id}`;
      const cost = fieldsOf(fieldsOf(model)?.get('cost'));
      const isTwice = [[provider], [provider, 'models', id]].some((path) => twice.has(JSON.stringify(path)));
      if (cost === undefined || isTwice) {
        book.skip(name, cost === undefined ? 'has no cost' : 'has two prices in the file');
        continue;
      }
      const price = draft();
      costs(book, name, price, '', cost);
      modes(book, name, price, fieldsOf(fieldsOf(model)?.get('experimental'))?.get('modes'));
      if (provider === 'openai') shortestWrite(price);
      book.add(name, 'text', price);
    }
  }
  return book;
}

/** `at`: where the object stands, for messages about its fields. */
function costs(book: BookBuilder, model: string, price: Draft, at: string, cost: ReadonlyMap<string, unknown>): void {
  // The list has the true thresholds; the older member repeats one of its entries under a name that need not be its threshold.
  const hasTiers = Array.isArray(cost.get('tiers'));
  for (const [name, value] of cost) {
    const field = `${at}${name}`;
    const rate = MODELS_DEV.get(name);
    const thousands = /^context_over_([0-9]+)k$/.exec(name)?.[1];
    const nested = fieldsOf(value);
    if (rate !== undefined) book.set(model, price, { field, rate }, value);
    else if (name === 'tiers' && Array.isArray(value)) contextTiers(book, model, price, field, value);
    else if (thousands === undefined || nested === undefined) book.ignore(model, field, 'has no counterpart');
    else if (!hasTiers) longContext(book, model, price, field, Number(thousands) * 1000, nested);
  }
}

function contextTiers(book: BookBuilder, model: string, price: Draft, field: string, tiers: readonly unknown[]): void {
  for (const [index, tier] of tiers.entries()) {
    const at = `${field}[${index}]`;
    const fields = fieldsOf(tier);
    const about = fieldsOf(fields?.get('tier'));
    const size = about?.get('size');
    const type = about?.get('type') ?? 'context';
    const above = size instanceof NumberText ? Number(size.text) : Number.NaN;
    if (fields === undefined || type !== 'context' || !Number.isSafeInteger(above) || above <= 0) {
      book.ignore(model, at, 'has no counterpart');
      continue;
    }
    longContext(book, model, price, at, above, new Map([...fields].filter(([name]) => name !== 'tier')));
  }
}

function longContext(
  book: BookBuilder,
  model: string,
  price: Draft,
  at: string,
  above: number,
  amounts: ReadonlyMap<string, unknown>,
): void {
  for (const [name, amount] of amounts) {
    const field = `${at}.${name}`;
    const rate = MODELS_DEV.get(name);
    if (rate === undefined) book.ignore(model, field, 'has no counterpart');
    else book.set(model, price, { field, rate, above }, amount);
  }
}

/** The members of a request that turn a mode on, which answers repeat as what they served. */
const SWITCHES: readonly (readonly [string, ModifierKind])[] = [
  ['speed', 'speeds'],
  ['service_tier', 'service_tiers'],
  ['inference_geo', 'geos'],
];

function modes(book: BookBuilder, model: string, price: Draft, value: unknown): void {
  for (const [mode, entry] of fieldsOf(value) ?? []) {
    const field = `experimental.modes.${mode}.`;
    const fields = fieldsOf(entry);
    const cost = fieldsOf(fields?.get('cost'));
    if (cost === undefined) continue;
    const body = fieldsOf(fieldsOf(fields?.get('provider'))?.get('body'));
    const on = SWITCHES.flatMap(([member, kind]) => {
      const name = body?.get(member);
      return typeof name === 'string' ? [{ kind, name }] : [];
    });
    const [only] = on;
    if (only === undefined || on.length > 1) book.ignore(model, `${field}cost`, 'names no speed, service tier or region');
    else costs(book, model, modifierDraft(price, only.kind, only.name), field, cost);
  }
}
