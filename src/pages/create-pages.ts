/**
 * The web pages of the gateway: `/`, `/apidocs`, `/openapi.json`, `/prices.json` and their assets, as answers to a method and a
 * path. It reads no header but those of caching and compression, so a Host header changes nothing.
 *
 * Everything without prices is made once. Pages with prices are made again when `prices()` returns another list.
 */
import { API_REFERENCE } from './api-reference/api-reference.ts';
import { openApiDocument } from './api-reference/openapi.ts';
import { createApiDocs } from './api-docs.ts';
import { loadAssets } from './assets.ts';
import { createHomePage } from './home-page.ts';
import type { PriceList } from './price-list.ts';
import { priceListJson } from './price-display.ts';
import { type PageRequestHeaders, type PageResponse, type Representation, represent, responder } from './representation.ts';
import { SECURITY_HEADERS } from './security-headers.ts';

export interface PagesOptions {
  /**
   * `public_base_url` of the configuration, plain (`build-config.ts`). Absent: each browser names its own origin where that is
   * safe.
   */
  readonly publicBaseUrl?: string;
  /** The current price list; asked at each request. Return the same object while nothing has changed: that is the fast path. */
  readonly prices: () => PriceList;
}

export interface Pages {
  /**
   * The answer to a request, or undefined where `path` (without its query, not decoded) is none of the pages'. GET and HEAD are
   * answered, any other method gets 405. Never throws for what a client sends.
   */
  respond(method: string, path: string, headers: PageRequestHeaders): PageResponse | undefined;
}

/** The pages' own paths, assets aside. */
export const PAGE_PATHS = ['/', '/account', '/apidocs', '/openapi.json', '/prices.json'] as const;

/** Whether a path can be a page's at all, without making the pages. */
export function isPagePath(path: string): boolean {
  return path === '/favicon.ico' || path.startsWith('/assets/') || PAGE_PATHS.some((page) => page === path);
}

/** Browsers revalidate each time; the ETag makes that cheap. */
export const REVALIDATE = 'no-cache';
const PRICES_CACHE = 'public, max-age=5, must-revalidate';
export const HTML_TYPE = 'text/html; charset=utf-8';
const JSON_TYPE = 'application/json; charset=utf-8';

/** Throws an Error where a file of `static/` is missing. */
export function createPages({ publicBaseUrl: baseUrl, prices }: PagesOptions): Pages {
  const directory = new URL('../../static/', import.meta.url);
  const exampleDirectory = new URL('examples/', directory);
  const assets = loadAssets(directory);

  const fixed = new Map<string, Representation>();
  fixed.set('/favicon.ico', represent(assets.source('mizu.svg'), 'image/svg+xml', 'public, max-age=86400'));
  const docs = createApiDocs({ template: assets.template('apidocs.html'), exampleDirectory, baseUrl, reference: API_REFERENCE });
  fixed.set('/apidocs', represent(docs, HTML_TYPE, REVALIDATE));
  fixed.set('/account', represent(assets.template('account.html'), HTML_TYPE, REVALIDATE));
  fixed.set('/openapi.json', represent(JSON.stringify(openApiDocument(API_REFERENCE, baseUrl)), JSON_TYPE, REVALIDATE));

  const homePage = createHomePage({ template: assets.template('home.html'), exampleDirectory, baseUrl });
  let priced = priceList(prices());

  function priceList(list: PriceList) {
    const json = priceListJson(list);
    const { version } = JSON.parse(json) as { readonly version: string };
    return {
      list,
      json,
      home: represent(homePage(list, version), HTML_TYPE, REVALIDATE, 5),
      prices: represent(json, JSON_TYPE, PRICES_CACHE, 5),
    };
  }

  function current() {
    const list = prices();
    if (list === priced.list) return priced;
    // Another object may hold the same prices; then nothing is compressed again.
    priced = priceListJson(list) === priced.json ? { ...priced, list } : priceList(list);
    return priced;
  }

  function find(path: string): Representation | undefined {
    if (path === '/') return current().home;
    if (path === '/prices.json') return current().prices;
    return fixed.get(path) ?? assets.byPath.get(path);
  }

  return { respond: responder(find, SECURITY_HEADERS) };
}
