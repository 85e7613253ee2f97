/** The `api.json` of models.dev: US dollars a million tokens. */
import { BookBuilder, type Draft, draft, fieldsOf, parseKeepingDigits, type PriceBook } from './price-book.ts';

const MODELS_DEV: ReadonlyMap<string, string> = new Map([
  ['input', 'input'],
  ['output', 'output'],
  ['cache_read', 'cached_input'],
  ['cache_write', 'cache_write_5m'],
  ['reasoning', 'reasoning'],
]);

/** Models are named `provider/model`. Throws SyntaxError when `text` is not JSON. */
export function readModelsDev(text: string): PriceBook {
  const book = new BookBuilder();
  for (const [provider, entry] of fieldsOf(parseKeepingDigits(text)) ?? []) {
    for (const [id, model] of fieldsOf(fieldsOf(entry)?.get('models')) ?? []) {
      const name = `${provider}/${id}`;
      const cost = fieldsOf(fieldsOf(model)?.get('cost'));
      if (cost === undefined) {
        book.skip(name, 'has no cost');
        continue;
      }
      const price = draft();
      for (const [field, value] of cost) devField(book, name, price, field, value);
      book.add(name, 'text', price);
    }
  }
  return book;
}

function devField(book: BookBuilder, model: string, price: Draft, field: string, value: unknown): void {
  const rate = MODELS_DEV.get(field);
  if (rate !== undefined) {
    book.set(model, price, { field, rate }, value);
    return;
  }
  const thousands = /^context_over_([0-9]+)k$/.exec(field)?.[1];
  const nested = fieldsOf(value);
  if (thousands === undefined || nested === undefined) {
    book.ignore(model, field, 'has no counterpart');
    return;
  }
  for (const [inner, amount] of nested) {
    const innerRate = MODELS_DEV.get(inner);
    if (innerRate === undefined) book.ignore(model, `${field}.${inner}`, 'has no counterpart');
    else book.set(model, price, { field: `${field}.${inner}`, rate: innerRate, above: Number(thousands) * 1000 }, amount);
  }
}
