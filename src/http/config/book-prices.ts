/** Prices of models that have none of their own, from the operator's price book: a file in a public format. */
import { dirname, resolve } from 'node:path';
import { readLiteLlm } from '../../store/litellm-prices.ts';
import { readModelsDev } from '../../store/models-dev-prices.ts';
import { type BookPrice, isModelsDev, type PriceBook } from '../../store/price-book.ts';
import { done, type Result, refused } from '../../store/result.ts';
import type { ParsePrice } from './build-model.ts';
import type { Channel, Model } from './config.ts';
import { type ConfigProblem, joinPath } from './config-error.ts';
import type { ConfigFile } from './schema.ts';

export interface BookOptions {
  readonly parsePrice: ParsePrice;
  /** The configuration's own path: that of the book is relative to its folder. */
  readonly path: string;
  /** Throws when the file cannot be read. */
  readFile(path: string): string;
}

/**
 * Gives each model without a price the one that the book has for it. What is wrong with the book or in it is appended to the
 * problems.
 */
export function addBookPrices(
  models: Map<string, Model>,
  channels: readonly Channel[],
  file: ConfigFile,
  options: BookOptions,
  problems: ConfigProblem[],
): void {
  const { price_book: path } = file;
  for (const [name, { price_as: entry }] of Object.entries(file.models)) {
    if (entry !== undefined && path === undefined)
      problems.push({ path: joinPath(['models', name, 'price_as']), message: 'needs a price_book' });
  }
  if (path === undefined) return;
  const read = readBook(resolve(dirname(options.path), path), options);
  if (!read.ok) {
    problems.push({ path: 'price_book', message: read.refusal });
    return;
  }
  const book = new Book(read.value);
  for (const [name, entry] of Object.entries(file.models)) {
    const model = models.get(name);
    if (model === undefined || entry.price !== undefined) continue;
    const at = joinPath(['models', name, entry.price_as === undefined ? 'price' : 'price_as']);
    const found = book.price(entry.price_as === undefined ? namesOf(name, channels) : [entry.price_as]);
    if (found === undefined) {
      if (entry.price_as !== undefined)
        problems.push({ path: at, message: `the price book has no model ${JSON.stringify(entry.price_as)}` });
      continue;
    }
    const priced = found.ok ? withPrice(model, found.value, book.hasKinds, options.parsePrice) : found;
    if (priced.ok) models.set(name, priced.value);
    else problems.push({ path: at, message: `in the price book, ${priced.refusal}` });
  }
}

/** Its own name, then what Channels call it. */
function namesOf(name: string, channels: readonly Channel[]): string[] {
  return [name, ...channels.flatMap(({ models }) => models.get(name) ?? [])];
}

function withPrice(model: Model, found: FoundPrice, hasKinds: boolean, parsePrice: ParsePrice): Result<Model, string> {
  const { entry, ignored, kind, price } = found;
  if (hasKinds && kind !== model.kind) return refused(`${entry} is of kind ${kind}, and this model is of kind ${model.kind}`);
  const rates = parsePrice(price, { kind: model.kind });
  if (!rates.ok)
    return refused(`the price of ${entry} is not one of kind ${model.kind}: ${rates.refusal.field} ${rates.refusal.message}`);
  return done({ ...model, rates: rates.value, bookPrice: { entry, ignored } });
}

function readBook(path: string, { readFile }: BookOptions): Result<PriceBook, string> {
  let text: string;
  try {
    text = readFile(path);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? ` (${String(error.code)})` : '';
    return refused(`the file ${path} cannot be read${code}`);
  }
  try {
    const book = isModelsDev(text) ? readModelsDev(text) : readLiteLlm(text);
    return book.prices.size > 0 ? done(book) : refused(`${path} holds no price as LiteLLM or models.dev writes them`);
  } catch (error) {
    if (error instanceof SyntaxError) return refused(`${path} is not valid JSON: ${error.message}`);
    throw error;
  }
}

interface FoundPrice extends BookPrice {
  /** The name of the entry. */
  readonly entry: string;
  /** Its members that our prices cannot express. */
  readonly ignored: readonly string[];
}

class Book {
  readonly hasKinds: boolean;
  readonly #book: PriceBook;
  /** Entries by the part of their name that stands behind the provider. */
  readonly #byBareName: ReadonlyMap<string, readonly string[]>;

  constructor(book: PriceBook) {
    this.hasKinds = book.hasKinds;
    this.#book = book;
    const entries = [...book.prices.keys()];
    this.#byBareName = new Map(Object.entries(Object.groupBy(entries, bare)).map(([name, list = []]) => [name, list]));
  }

  /**
   * The entry of the first name that has one; else those that have it behind a provider. Refused where these differ, and where
   * the entry has no price of ours; undefined where there is none.
   */
  price(names: readonly string[]): Result<FoundPrice, string> | undefined {
    for (const name of names) {
      const skipped = this.#book.skipped.find(({ model }) => model === name);
      if (skipped !== undefined) return refused(`${skipped.model} ${skipped.reason}`);
      const found = this.#book.prices.has(name) ? [name] : (this.#byBareName.get(name) ?? []);
      const [entry, ...others] = found;
      const price = entry === undefined ? undefined : this.#book.prices.get(entry);
      if (entry === undefined || price === undefined) continue;
      const other = others.find((each) => !isSame(price, this.#book.prices.get(each)));
      if (other !== undefined) return refused(`${entry} and ${other} have different prices: price_as says which one is meant`);
      const ignored = this.#book.ignored.filter(({ model }) => model === entry).map(({ field }) => field);
      return done({ ...price, entry, ignored });
    }
    return undefined;
  }
}

/** The part behind the provider: catalogues name models `provider/model`. */
function bare(entry: string): string {
  return entry.slice(entry.lastIndexOf('/') + 1);
}

function isSame(one: BookPrice, other: BookPrice | undefined): boolean {
  return other !== undefined && one.kind === other.kind && JSON.stringify(one.price) === JSON.stringify(other.price);
}
