/**
 * The operator's console, `/console` of the operations port: one page, its styles and its modules. It holds no data; what it
 * shows its modules ask of the admin API, as whoever signed in.
 */
import { readFileSync } from 'node:fs';
import { loadAssets } from './assets.ts';
import { HTML_TYPE, type Pages, REVALIDATE } from './create-pages.ts';
import { represent, responder } from './representation.ts';
import { SECURITY_HEADERS } from './security-headers.ts';

/** Whether a path can be the console's at all, without making it. */
export function isConsolePath(path: string): boolean {
  return path === '/console' || path === '/console/' || path === '/favicon.ico' || path.startsWith('/assets/');
}

/** Throws an Error where a file is missing. */
export function createConsole(): Pages {
  const directory = new URL('../../static/', import.meta.url);
  const assets = loadAssets(new URL('console/', directory), [directory], new Map([['uplot.js', plotLibrary()]]));
  const page = represent(assets.template('console.html'), HTML_TYPE, REVALIDATE);
  const icon = represent(assets.source('mizu.svg'), 'image/svg+xml', 'public, max-age=86400');
  const respond = responder((path) => {
    if (path === '/console') return page;
    return path === '/favicon.ico' ? icon : assets.byPath.get(path);
  }, SECURITY_HEADERS);
  return {
    respond(method, path, headers) {
      // The page names its files relative to where it stands.
      if (path !== '/console/') return respond(method, path, headers);
      return {
        status: 308,
        headers: { ...SECURITY_HEADERS, location: '../console', 'content-length': '0' },
        body: Buffer.alloc(0),
      };
    },
  };
}

/** The package has a small file for pages that load scripts only; it becomes a module by saying what it makes. */
function plotLibrary(): string {
  const file = new URL(import.meta.resolve('uplot/dist/uPlot.iife.min.js'));
  return `${readFileSync(file, 'utf8')}\nexport { uPlot };\n`;
}
