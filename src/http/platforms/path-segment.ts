/**
 * One segment of a path as the vendors' packages write it: what RFC 3986 allows in a segment stays, everything else is
 * percent-encoded.
 */
export function pathSegment(text: string): string {
  // A segment of dots would name another path.
  if (/^\.+$/.test(text)) return text.replaceAll('.', '%2E');
  return text.replace(/[^A-Za-z0-9\-._~!$&'()*+,;=:@]+/g, encodeURIComponent);
}
