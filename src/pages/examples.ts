/**
 * Examples as blocks of a page: their text from the reference and `static/examples/`, the reader's values marked so that scripts
 * find them.
 */
import { existsSync, readFileSync } from 'node:fs';
import { BASE_URL, curlOf, goOf, LANGUAGES, type Language, MODEL, type ProtocolExample } from './api-reference/examples.ts';
import { type Fragment, html, type Markup } from './html.ts';

/** Shown until a script fills in the real address. */
const UNKNOWN_BASE_URL = 'https://gateway.example';
export const UNKNOWN_MODEL = 'your-model';

/** The text with its placeholders. Throws where neither a file nor a request gives one. */
export function exampleText(directory: URL, example: ProtocolExample, language: Language): string {
  const { extension } = LANGUAGES.find(({ id }) => id === language) ?? LANGUAGES[0];
  const file = `${example.id}.${extension}`;
  if (existsSync(new URL(file, directory))) return fileText(directory, file);
  if (example.request !== undefined && language === 'curl') return curlOf(example.request);
  if (example.request !== undefined && language === 'go') return goOf(example.request);
  throw new Error(`no ${language} example of ${example.id}`);
}

export function fileText(directory: URL, file: string): string {
  return readFileSync(new URL(file, directory), 'utf8').trimEnd();
}

export interface ReaderValues {
  /** Undefined: the browser names its own origin, where that is safe. */
  readonly baseUrl: string | undefined;
  /** A plain id (`build-config.ts`). */
  readonly model: string;
}

/** Placeholders become `<span class="base">` and `<span class="model">`; everything else is escaped. */
export function codeOf(text: string, { baseUrl, model }: ReaderValues): Markup {
  const parts: Fragment[] = text.split(new RegExp(`(${BASE_URL}|${MODEL})`)).map((part) => {
    if (part === BASE_URL) return html`<span class="base">${baseUrl ?? UNKNOWN_BASE_URL}</span>`;
    if (part === MODEL) return html`<span class="model">${model}</span>`;
    return part;
  });
  return html`${parts}`;
}

export interface ExampleBlock {
  readonly protocol: string;
  readonly language: string;
  /** Shown above the code, and part of the copy button's accessible name. */
  readonly title: string;
  readonly code: Markup;
}

export function exampleBlock({ protocol, language, title, code }: ExampleBlock): Markup {
  return html`<div class="example" data-protocol="${protocol}" data-language="${language}"><div class="bar"><span>${title}</span><button type="button" class="copy" aria-describedby="copy-reason" disabled>Copy<span class="sr"> ${title}</span></button></div><pre tabindex="0" role="region" aria-label="${title}"><code>${code}</code></pre></div>
`;
}

export function radios(name: string, choices: readonly { readonly id: string; readonly title: string }[]): Markup {
  return html`${choices.map(
    ({ id, title }, index) =>
      html`<label><input type="radio" name="${name}" value="${id}" autocomplete="off"${index === 0 ? html` checked` : ''}>${title}</label>`,
  )}`;
}
