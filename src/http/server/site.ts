/** What people read in a browser, as the listener sees it. It is handed in by who starts the gateway: http imports no page. */

/** What the server writes. `body` is empty for HEAD and 304. Header names are lower case. */
export interface SiteResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

/** The request headers that matter here, as node:http names them. */
export interface SiteRequestHeaders {
  readonly 'accept-encoding'?: string | readonly string[] | undefined;
  readonly 'if-none-match'?: string | readonly string[] | undefined;
}

export interface Site {
  /** Whether a path can be one of the site's at all. Called for every request: no page is made for the answer. */
  isPath(path: string): boolean;
  /**
   * The answer, or undefined where `path` (without its query, not decoded) is none of the site's. Never throws for what a client
   * sends.
   */
  respond(method: string, path: string, headers: SiteRequestHeaders): SiteResponse | undefined;
}

/** A gateway without pages. */
export const NO_SITE: Site = { isPath: () => false, respond: () => undefined };
