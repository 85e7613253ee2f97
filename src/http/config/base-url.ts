/**
 * The address that the examples name. It comes from the configuration, else from the browser's own location; never from a request's
 * Host header, which anybody may choose. The characters are limited because readers paste these examples into a shell.
 */

const PLAIN = /^https?:\/\/(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9a-f:.]+\])(?::\d{1,5})?(?:\/[A-Za-z0-9._~-]+)*$/;

/** Whether examples may name it: http or https, a host, a port, a path; no slash at its end. */
export function isPlainBaseUrl(text: string): boolean {
  return PLAIN.test(text) && URL.canParse(text);
}
