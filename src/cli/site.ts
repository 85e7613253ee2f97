/** The web pages of a running gateway, made from its configuration. */
import type { ConfigSource } from '../http/config/source.ts';
import type { Site } from '../http/server/site.ts';
import { createConsole, isConsolePath } from '../pages/console.ts';
import { createPages, isPagePath, type Pages } from '../pages/create-pages.ts';
import { createPriceLists } from './price-lists.ts';

/**
 * The pages are made on first use, since compressing them takes half a second (`prepare` does it before the gateway listens), and
 * again only when the public address changes. Changed prices are the pages' own business.
 */
export function createSite(config: ConfigSource): Site & { prepare(): void } {
  const prices = createPriceLists(config);
  let made: { readonly publicBaseUrl: string | undefined; readonly pages: Pages } | undefined;
  const pages = (): Pages => {
    const { publicBaseUrl } = config.current();
    if (made === undefined || made.publicBaseUrl !== publicBaseUrl) {
      made = { publicBaseUrl, pages: createPages({ prices, ...(publicBaseUrl === undefined ? {} : { publicBaseUrl }) }) };
    }
    return made.pages;
  };
  return {
    isPath: isPagePath,
    respond: (method, path, headers) => pages().respond(method, path, headers),
    prepare: () => void pages(),
  };
}

/** The console, made when it is first asked for: most processes never show it. */
export function createConsoleSite(): Site {
  let made: Pages | undefined;
  return {
    isPath: isConsolePath,
    respond(method, path, headers) {
      made ??= createConsole();
      return made.respond(method, path, headers);
    },
  };
}
