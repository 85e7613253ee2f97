/** What the demonstration's model knows: the prose of the repository's own documents, read when it is first needed. */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type NgramModel, trainNgram } from './ngram.ts';
import { type Recall, recallFrom } from './recall.ts';

export interface Knowledge {
  readonly paragraphs: readonly string[];
  readonly recall: Recall;
  /** How likely each word of a paragraph is. */
  readonly ngrams: NgramModel;
}

/** Read where the folder holds no documents, so that the model always has something to say. */
const FALLBACK = [
  'A gateway stands between the clients and the models, and each side hears only its own language.',
  'A stream is a row of events that arrive one after another, and nothing that has arrived may be lost.',
  'The first rule of the gateway is that a failure is never turned into a success.',
  'The second rule of the gateway is that nothing is lost silently between the client and the model.',
];

/** Learnt at its first use and then kept. `folder`: the repository's root. */
export function lazyKnowledge(folder: string | undefined): () => Knowledge {
  let knowledge: Knowledge | undefined;
  return () => {
    knowledge ??= learn(paragraphsIn(folder));
    return knowledge;
  };
}

export function learn(paragraphs: readonly string[]): Knowledge {
  return { paragraphs, recall: recallFrom(paragraphs), ngrams: trainNgram(paragraphs) };
}

function paragraphsIn(folder: string | undefined): readonly string[] {
  if (folder === undefined) return FALLBACK;
  const files = globSync(['README.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md', 'docs/**/*.md'], { cwd: folder }).sort();
  const paragraphs = files.flatMap((file) => proseOf(readFileSync(join(folder, file), 'utf8')));
  return paragraphs.length >= FALLBACK.length ? paragraphs : [...paragraphs, ...FALLBACK];
}

/** Paragraphs of running text: no code, headings, tables, lists of links or markup. */
export function proseOf(markdown: string): readonly string[] {
  return markdown
    .replace(/^```[\s\S]*?^```/gm, '')
    .replace(/<!--[\s\S]*?-->/g, '')
    .split(/\n\s*\n/)
    .filter((block) => !/^\s*(#|\||>|<|\[|!\[)/.test(block))
    .flatMap((block) => block.split(/\n(?=\s*(?:[-*]|\d+\.)\s)/))
    .map((block) =>
      block
        .replace(/^\s*(?:[-*]|\d+\.)\s+/, '')
        .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
        .replace(/[`*]/g, '')
        .replace(/\s+/g, ' ')
        .trim(),
    )
    .filter((block) => block.length > 40 && /[.:!?]$/.test(block));
}
