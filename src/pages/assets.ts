/**
 * The files of `static/`, read once at start. A style, script or picture that a template leads to is served as
 * `assets/<name>.<digest>.<extension>`, so that it can be cached for ever; the names inside modules and templates are rewritten
 * to these. The disk is not read while serving: a path that is not in the map does not exist.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { extname } from 'node:path';
import { digestOf, type Representation, represent } from './representation.ts';

const CONTENT_TYPES: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
};

const FOR_EVER = 'public, max-age=31536000, immutable';
const REFERENCE = /(['"(])\.\/([\w-]+\.(?:js|css|svg))(['")])/g;

export interface Assets {
  /** By request path, `/assets/…`: what the templates that were asked for lead to. */
  readonly byPath: ReadonlyMap<string, Representation>;
  /** A template of `static/` with its `assets/<name>` references replaced. */
  template(name: string): string;
  /** The bytes of an asset under its plain name. */
  source(name: string): string;
}

/**
 * Throws where a file is missing or two modules import each other. `directory` ends in a slash and has the templates; `shared`
 * are directories whose files may be named as well, `made` are texts that stand in no directory.
 */
export function loadAssets(directory: URL, shared: readonly URL[] = [], made: ReadonlyMap<string, string> = new Map()): Assets {
  const sources = new Map(made);
  for (const folder of [...shared, directory]) {
    for (const name of readdirSync(folder)) {
      if (extname(name) in CONTENT_TYPES) sources.set(name, readFileSync(new URL(name, folder), 'utf8'));
    }
  }
  const hashed = new Map<string, string>();
  const byPath = new Map<string, Representation>();

  function publish(name: string, importers: readonly string[]): string {
    const known = hashed.get(name);
    if (known !== undefined) return known;
    const source = sources.get(name);
    if (source === undefined) throw new Error(`static/${name} does not exist (named by ${importers.at(-1) ?? 'a template'})`);
    if (importers.includes(name)) throw new Error(`static/${name} imports itself through ${importers.join(', ')}`);
    const text = source.replace(
      REFERENCE,
      (_whole, before: string, other: string, after: string) => `${before}./${publish(other, [...importers, name])}${after}`,
    );
    const extension = extname(name);
    const published = `${name.slice(0, -extension.length)}.${digestOf(text)}${extension}`;
    hashed.set(name, published);
    byPath.set(`/assets/${published}`, represent(text, CONTENT_TYPES[extension] ?? '', FOR_EVER));
    return published;
  }
  return {
    byPath,
    template(name) {
      const text = readFileSync(new URL(name, directory), 'utf8');
      return text.replace(/"assets\/([\w-]+\.(?:js|css|svg))"/g, (_whole, asset: string) => `"assets/${publish(asset, [])}"`);
    },
    source(name) {
      const text = sources.get(name);
      if (text === undefined) throw new Error(`static/${name} does not exist`);
      return text;
    },
  };
}
