/** The mutants of a room: which files it has, what is done to them, and which of them a seed draws. */
import { globSync } from 'node:fs';
import { join } from 'node:path';
import type { SourceFile } from 'typescript/unstable/ast';
import { API, type Project } from 'typescript/unstable/sync';
import { hashOf, ROOT } from './coverage.ts';
import { type Change, changesOf } from './mutators.ts';

export interface Mutant extends Change {
  /**
   * The file and a hash of the line, of what stands in its place and of which of several alike it is: a change elsewhere in the
   * file leaves it.
   */
  readonly id: string;
  readonly file: string;
  /** Counted from 1. */
  readonly line: number;
  /** What is replaced. */
  readonly original: string;
  /** The whole file as it is. */
  readonly source: string;
}

/**
 * Source files as the compiler reads them, those among them that `changed` puts in the place of what stands in the folder or adds
 * to it.
 */
class Sources implements Disposable {
  readonly #api: API;
  readonly #project: Project;

  constructor(files: readonly string[], changed: ReadonlyMap<string, string> = new Map()) {
    const config = join(ROOT, 'tsconfig.mutation.json');
    const texts = new Map([...changed].map(([file, text]) => [join(ROOT, file), text]));
    texts.set(config, JSON.stringify({ extends: './tsconfig.json', include: [], files }));
    this.#api = new API({
      cwd: ROOT,
      fs: { readFile: (file) => texts.get(file), fileExists: (file) => texts.has(file) || undefined },
    });
    const project = this.#api.updateSnapshot({ openProjects: [config] }).getProject(config);
    if (project === undefined) throw new Error('the compiler opened no project');
    this.#project = project;
  }

  [Symbol.dispose](): void {
    this.#api.close();
  }

  read(file: string): SourceFile {
    const source = this.#project.program.getSourceFile(join(ROOT, file));
    if (source === undefined) throw new Error(`the compiler did not read ${file}`);
    return source;
  }

  isSound(file: string): boolean {
    const { program } = this.#project;
    const path = join(ROOT, file);
    return program.getSyntacticDiagnostics(path).length === 0 && program.getSemanticDiagnostics(path).length === 0;
  }
}

/** The whole file with the change in it. */
export const mutated = ({ source, from, to, text }: Mutant): string => source.slice(0, from) + text + source.slice(to);

export function mutantsOf(files: readonly string[]): Mutant[] {
  using sources = new Sources(files);
  return files.flatMap((file) => {
    const source = sources.read(file);
    const alike = new Map<string, number>();
    return changesOf(source).map((change) => {
      const { from, to, text } = change;
      const begin = source.text.lastIndexOf('\n', from) + 1;
      const line = source.text.slice(begin, source.text.indexOf('\n', from)).trim();
      const place = source.text.slice(begin, from).trimStart().length;
      const original = source.text.slice(from, to);
      const key = [line, place, original, text].join('\0');
      const count = alike.get(key) ?? 0;
      alike.set(key, count + 1);
      const id = `${file}#${hashOf(`${key}\0${count}`).slice(0, 10)}`;
      return { ...change, id, file, line: source.text.slice(0, from).split('\n').length, original, source: source.text };
    });
  });
}

/**
 * Those that compile: a change that the types refuse needs no test. All are checked in one program, each as a copy beside its
 * file. Only what no copy can be (a class with private members, which is another one in its copy) is checked by itself.
 */
export function compiling(mutants: readonly Mutant[]): Set<Mutant> {
  const copies = new Map(mutants.map((mutant, index) => [copyOf(mutant.file, index), mutated(mutant)]));
  const files = [...new Set(mutants.map(({ file }) => file))];
  for (const { file, source } of mutants) copies.set(copyOf(file, 'same'), source);
  using sources = new Sources([...copies.keys()], copies);
  const alone = new Set(files.filter((file) => !sources.isSound(copyOf(file, 'same'))));
  const isSound = (mutant: Mutant, index: number): boolean => {
    if (!alone.has(mutant.file)) return sources.isSound(copyOf(mutant.file, index));
    using itself = new Sources([mutant.file], new Map([[mutant.file, mutated(mutant)]]));
    return itself.isSound(mutant.file);
  };
  return new Set(mutants.filter(isSound));
}

const copyOf = (file: string, name: number | string): string => file.replace(/\.ts$/, `.${name}.ts`);

/**
 * All mutants of a room in the order in which a seed draws them. One that stays in the source keeps its place before and after
 * the others.
 */
export function drawn(room: readonly string[], seed: number): Mutant[] {
  const found = room.flatMap((pattern) => globSync(pattern, { cwd: ROOT }));
  // A file of types alone has nothing that runs.
  const files = [...new Set(found)].filter((file) => !file.endsWith('.d.ts')).sort();
  const ranked = mutantsOf(files).map((mutant) => ({ mutant, rank: hashOf(`${seed} ${mutant.id}`) }));
  return ranked.sort((a, b) => (a.rank < b.rank ? -1 : 1)).map(({ mutant }) => mutant);
}
