/** LiteLLM's `model_prices_and_context_window.json`: US dollars a token. */
import {
  BookBuilder,
  type Draft,
  draft,
  fieldsOf,
  modifierDraft,
  givenTwice,
  NumberText,
  parseKeepingDigits,
  type Place,
  type PriceBook,
  shortestWrite,
} from './price-book.ts';
import type { ModelKind } from './prices.ts';

/** LiteLLM's names (US dollars a token, a piece, a call), ours, and the shift from their unit to ours. */
const LITELLM: ReadonlyMap<string, readonly [string, number]> = new Map([
  ['input_cost_per_token', ['input', 6]],
  ['cache_read_input_token_cost', ['cached_input', 6]],
  ['cache_creation_input_token_cost', ['cache_write_5m', 6]],
  ['cache_creation_input_token_cost_above_1hr', ['cache_write_1h', 6]],
  ['output_cost_per_token', ['output', 6]],
  ['output_cost_per_reasoning_token', ['reasoning', 6]],
  ['input_cost_per_image_token', ['image_input', 6]],
  ['output_cost_per_image_token', ['image_output', 6]],
  ['input_cost_per_audio_token', ['audio_input', 6]],
  ['output_cost_per_audio_token', ['audio_output', 6]],
  ['output_cost_per_image', ['image', 0]],
  ['file_search_cost_per_1k_calls', ['file_search', 0]],
]);

/** Of a picture that is made, where the entry has no other price of that; else of one that is given. */
const GIVEN_OR_MADE = 'input_cost_per_image';

const KIND_OF_MODE: ReadonlyMap<string, ModelKind> = new Map([
  ['chat', 'text'],
  ['completion', 'text'],
  ['responses', 'text'],
  ['embedding', 'embedding'],
  ['image_generation', 'image'],
  ['image_edit', 'image'],
  ['video_generation', 'video'],
]);

/** Where a LiteLLM price name with its suffixes belongs. */
function litellmPlace(name: string): (Omit<Place, 'field'> & { readonly tier: string | undefined }) | undefined {
  const match = /^(.*?)(?:_above_([0-9]+)k_tokens)?(?:_(priority|flex))?$/.exec(name);
  const found = LITELLM.get(match?.[1] ?? '');
  if (match === null || found === undefined) return undefined;
  const [rate, shift] = found;
  const [, , thousands, tier] = match;
  return { rate, shift, above: thousands === undefined ? undefined : Number(thousands) * 1000, tier };
}

/** Throws SyntaxError when `text` is not JSON. */
export function readLiteLlm(text: string): PriceBook {
  const book = new BookBuilder(true);
  const entries = fieldsOf(parseKeepingDigits(text)) ?? [];
  const twice = givenTwice(text, 0);
  for (const [model, entry] of entries) {
    const fields = fieldsOf(entry);
    if (model === 'sample_spec') continue;
    if (twice.has(JSON.stringify([model]))) {
      book.skip(model, 'has two prices in the file');
      continue;
    }
    const kind = KIND_OF_MODE.get(String(fields?.get('mode')));
    if (fields === undefined || kind === undefined) {
      book.skip(model, `mode ${String(fields?.get('mode') ?? 'missing')} is not served`);
      continue;
    }
    const price = draft();
    for (const [name, value] of fields) {
      if (name === 'provider_specific_entry') multipliers(book, model, price, value);
      if (!/cost/.test(name)) continue;
      if (name === 'search_context_cost_per_query') searchCost(book, model, price, value);
      else if (kind === 'image' && name === GIVEN_OR_MADE && !fields.has('output_cost_per_image'))
        book.set(model, price, { field: name, rate: 'image' }, value);
      else {
        const place = litellmPlace(name);
        if (place === undefined) book.ignore(model, name, 'has no counterpart');
        else book.set(model, tierOf(price, place.tier), { field: name, ...place }, value);
      }
    }
    if (String(fields.get('litellm_provider')) === 'openai') shortestWrite(price);
    onePriceOfPictures(book, model, price);
    book.add(model, kind, price);
  }
  return book;
}

/**
 * Entries have the price of a picture beside that of its tokens, which is the same said twice. The tokens know its size. Where
 * only the text of an answer has a price of tokens, that is not also paid for the picture.
 */
function onePriceOfPictures(book: BookBuilder, model: string, price: Draft): void {
  const tiers = price.modifiers.service_tiers;
  const drafts = [price, ...tiers.values()].filter((one) => typeof one !== 'string');
  if (drafts.some(({ rates }) => rates.has('image_output'))) {
    const had = drafts.flatMap(({ rates, long }) => [rates, long]).filter((rates) => rates.delete('image'));
    if (had.length > 0) book.ignore(model, 'output_cost_per_image', 'its tokens have a price');
    // A tier without any price would be billed as standard without a flag.
    for (const [name, tier] of tiers) if (typeof tier !== 'string' && tier.rates.size + tier.long.size === 0) tiers.delete(name);
  } else if (price.rates.has('image') && price.rates.has('output')) price.rates.set('image_output', '0');
}

function tierOf(price: Draft, tier: string | undefined): Draft {
  return tier === undefined ? price : modifierDraft(price, 'service_tiers', tier);
}

/** Regions by the names that answers have for them (`inference_geo`), which are those of this catalogue. */
const REGION = /^[a-z]{2}$/;

/** Multiples of the whole price: `fast` is a speed, two letters are a region. */
function multipliers(book: BookBuilder, model: string, price: Draft, value: unknown): void {
  for (const [name, factor] of fieldsOf(value) ?? []) {
    const field = `provider_specific_entry.${name}`;
    if (name === 'fast') book.multiply(model, price, 'speeds', name, field, factor);
    else if (REGION.test(name)) book.multiply(model, price, 'geos', name, field, factor);
    else if (factor instanceof NumberText) book.ignore(model, field, 'has no counterpart');
  }
}

/** One rate a search is ours; where sizes differ, the medium size, which is the default of the upstreams, counts. */
function searchCost(book: BookBuilder, model: string, price: Draft, value: unknown): void {
  const sizes = fieldsOf(value);
  const medium = sizes?.get('search_context_size_medium');
  if (sizes === undefined || medium === undefined) {
    book.ignore(model, 'search_context_cost_per_query', 'has no medium size');
    return;
  }
  book.set(model, price, { field: 'search_context_cost_per_query', rate: 'web_search', shift: 3 }, medium);
  for (const [size, other] of sizes) {
    const same = other instanceof NumberText && medium instanceof NumberText && other.text === medium.text;
    if (!same) book.ignore(model, `search_context_cost_per_query.${size}`, 'differs from the medium size');
  }
}
