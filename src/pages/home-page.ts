/** The home page as text: its template filled with a price list. First paint needs no script. */
import { LANGUAGES, PROTOCOL_EXAMPLES } from './api-reference/examples.ts';
import { codeOf, exampleBlock, exampleText, radios, UNKNOWN_MODEL } from './examples.ts';
import { fillTemplate, html, type Markup } from './html.ts';
import type { PriceList } from './price-list.ts';
import { priceTable, slides } from './price-table.ts';

const ON_THE_HOME_PAGE = PROTOCOL_EXAMPLES.slice(0, 3);

export interface HomePageOptions {
  readonly template: string;
  readonly exampleDirectory: URL;
  /** Checked (`build-config.ts`). */
  readonly baseUrl: string | undefined;
}

/** Reads the examples once; the function it returns is pure. `version` is that of `/prices.json`. */
export function createHomePage({
  template,
  exampleDirectory,
  baseUrl,
}: HomePageOptions): (list: PriceList, version: string) => string {
  const texts = ON_THE_HOME_PAGE.flatMap((example) =>
    LANGUAGES.map((language) => ({ example, language, text: exampleText(exampleDirectory, example, language.id) })),
  );
  return (list, version) => {
    const callable = list.models.filter(({ id, kind }) => kind === 'text' && isPlainModelId(id)).map(({ id }) => id);
    const model = callable[0] ?? UNKNOWN_MODEL;
    return fillTemplate(template, {
      'base-meta': baseMeta(baseUrl),
      base: baseUrl ?? 'ask the operator',
      slides: slides(list.models),
      updated: html`<time id="updated" datetime="${list.updatedAt}" data-version="${version}">${displayTime(list.updatedAt)}</time>`,
      table: priceTable(list.models),
      empty: list.models.length === 0 ? 'This gateway has no priced models yet.' : '',
      protocols: radios('protocol', ON_THE_HOME_PAGE),
      languages: radios('language', LANGUAGES),
      models: html`${(callable.length === 0 ? [UNKNOWN_MODEL] : callable).map((id) => html`<option>${id}</option>`)}`,
      examples: html`${texts.map(({ example, language, text }) =>
        exampleBlock({
          protocol: example.id,
          language: language.id,
          title: `${example.title}, ${language.title}`,
          code: codeOf(text, { baseUrl, model }),
        }),
      )}`,
    });
  };
}

/** Where the scripts find the configured base URL. */
export function baseMeta(baseUrl: string | undefined): Markup {
  return baseUrl === undefined ? html`` : html`<meta name="public-base-url" content="${baseUrl}">`;
}

/** `2026-11-20T11:58:03.120Z` as `2026-11-20 11:58:03 UTC`. */
function displayTime(iso: string): string {
  return `${iso.slice(0, 19).replace('T', ' ')} UTC`;
}

function isPlainModelId(id: string): boolean {
  return /^[A-Za-z0-9](?:[A-Za-z0-9._:@/+-]{0,127})$/.test(id);
}
