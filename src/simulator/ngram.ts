/**
 * A trigram model over words, interpolated with its bigrams and unigrams, so that every token of the vocabulary has a
 * probability and all of them sum to one. Knows text and chance; knows no dialect and no file.
 */
/** The token before a paragraph and after it: never said. */
const EDGE = '\u0000';

/** Weights of the trigram, bigram and unigram estimates; an estimate without data gives its weight to the next shorter one. */
const WEIGHTS = { trigram: 0.7, bigram: 0.22, unigram: 0.08 } as const;

interface Counts {
  total: number;
  readonly of: Map<string, number>;
}

export interface NgramModel {
  readonly vocabulary: readonly string[];
  /** P(token | the two tokens before it). */
  probability(context: Context, token: string): number;
  /** The likeliest tokens, best first; the end of a paragraph is not among them. */
  likeliest(context: Context, count: number): { readonly token: string; readonly probability: number }[];
}

export type Context = readonly [string, string];
export const PARAGRAPH_START: Context = [EDGE, EDGE];

/** Words, numbers, signs, each with the blank before it: joined again they are the text. */
export function tokenize(text: string): readonly string[] {
  return text.match(/ ?[\p{L}\p{N}_]+| ?[^\s\p{L}\p{N}_]+|\s+/gu) ?? [];
}

export function trainNgram(paragraphs: Iterable<string>): NgramModel {
  const unigrams: Counts = { total: 0, of: new Map() };
  const bigrams = new Map<string, Counts>();
  const trigrams = new Map<string, Counts>();
  for (const paragraph of paragraphs) {
    let [far, near] = PARAGRAPH_START;
    for (const token of [...tokenize(paragraph), EDGE]) {
      add(unigrams, token);
      add(countsAt(bigrams, near), token);
      add(countsAt(trigrams, `${far}\n${near}`), token);
      [far, near] = [near, token];
    }
  }
  if (unigrams.total === 0) throw new Error('an n-gram model needs at least one paragraph');

  /** The estimates with data, each with its share of the weight. Shares sum to one. */
  function estimates([far, near]: Context): readonly { readonly share: number; readonly counts: Counts }[] {
    const trigram = trigrams.get(`${far}\n${near}`);
    const bigram = bigrams.get(near);
    const shares: { share: number; counts: Counts }[] = [];
    let carried = 0;
    if (trigram === undefined) carried += WEIGHTS.trigram;
    else shares.push({ share: WEIGHTS.trigram, counts: trigram });
    if (bigram === undefined) carried += WEIGHTS.bigram;
    else {
      shares.push({ share: WEIGHTS.bigram + carried, counts: bigram });
      carried = 0;
    }
    shares.push({ share: WEIGHTS.unigram + carried, counts: unigrams });
    return shares;
  }

  function probability(context: Context, token: string): number {
    let sum = 0;
    for (const { share, counts } of estimates(context)) sum += (share * (counts.of.get(token) ?? 0)) / counts.total;
    return sum;
  }

  const common = [...unigrams.of]
    .sort((a, b) => b[1] - a[1])
    .slice(0, 32)
    .map(([token]) => token);

  function ranked(context: Context): { token: string; probability: number }[] {
    // The best tokens follow this context somewhere, or are common everywhere: no other can outrank those.
    const candidates = new Set(common);
    for (const { counts } of estimates(context)) {
      if (counts !== unigrams) for (const token of counts.of.keys()) candidates.add(token);
    }
    return [...candidates]
      .map((token) => ({ token, probability: probability(context, token) }))
      .sort((a, b) => b.probability - a.probability || (a.token < b.token ? -1 : 1));
  }

  return {
    vocabulary: [...unigrams.of.keys()],
    probability,
    likeliest: (context, count) =>
      ranked(context)
        .filter(({ token }) => token !== EDGE)
        .slice(0, count),
  };
}

function countsAt(map: Map<string, Counts>, key: string): Counts {
  let counts = map.get(key);
  if (counts === undefined) {
    counts = { total: 0, of: new Map() };
    map.set(key, counts);
  }
  return counts;
}

function add(counts: Counts, token: string): void {
  counts.total += 1;
  counts.of.set(token, (counts.of.get(token) ?? 0) + 1);
}
