/** As many stop sequences as a vendor takes: it refuses a request with more. Undefined where there are none. */
export function firstStops(stop: readonly string[] | undefined, most: number): readonly string[] | undefined {
  return stop === undefined || stop.length === 0 ? undefined : stop.slice(0, most);
}
