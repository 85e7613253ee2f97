/** Which paragraphs are about a question, by the words that they share: rare words count most. Knows text only. */

/** Shorter words say nothing of a subject. */
const SHORTEST = 4;

export type Recall = (question: string) => readonly string[];

/** Best first; empty where no paragraph shares a word with the question. */
export function recallFrom(paragraphs: readonly string[]): Recall {
  const places = new Map<string, number[]>();
  for (const [index, paragraph] of paragraphs.entries())
    for (const word of subjectsOf(paragraph)) {
      const known = places.get(word);
      if (known === undefined) places.set(word, [index]);
      else known.push(index);
    }
  return (question) => {
    const scores = new Map<number, number>();
    for (const word of subjectsOf(question)) {
      const found = places.get(word) ?? [];
      const weight = Math.log(1 + paragraphs.length / Math.max(1, found.length));
      for (const index of found) scores.set(index, (scores.get(index) ?? 0) + weight);
    }
    return [...scores].sort((a, b) => b[1] - a[1] || a[0] - b[0]).map(([index]) => paragraphs[index] ?? '');
  };
}

/** Words without their plural: `stream` finds `streams`. */
function subjectsOf(text: string): Set<string> {
  const words = text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];
  return new Set(words.filter((word) => word.length >= SHORTEST).map((word) => word.replace(/s$/, '')));
}
