/**
 * Frames of a server-sent event stream (https://html.spec.whatwg.org/multipage/server-sent-events.html). A frame is always whole: one
 * event with its blank line, or one comment.
 */

/** What chat-style dialects say last. */
export const SSE_DONE = 'data: [DONE]\n\n';

/** Keeps a connection open and is no event. */
export const SSE_KEEP_ALIVE = ': keep-alive\n\n';

const LINE_END = /\r\n|\r|\n/;

/** An event without a name. Every line of `data` becomes a data line (a reader gets LF for any line end). */
export function sseFrame(data: string): string {
  return `${dataLines(data)}\n`;
}

/** An event with a name. Throws a TypeError when the name is empty or holds a line end, since a reader would see another event. */
export function sseEvent(event: string, data: string): string {
  if (!isEventName(event)) throw new TypeError(`not an event name: ${JSON.stringify(event)}`);
  return `event: ${event}\n${dataLines(data)}\n`;
}

/** An event under a name that somebody else chose: one that cannot be said is left out, and the data goes alone. */
export function sseForeignEvent(event: string | undefined, data: string): string {
  return event !== undefined && isEventName(event) ? `event: ${event}\n${dataLines(data)}\n` : sseFrame(data);
}

function isEventName(event: string): boolean {
  return event !== '' && !event.includes('\n') && !event.includes('\r');
}

/** JSON.stringify never leaves a line end in its output, so the split is the rare path. */
function dataLines(data: string): string {
  if (!data.includes('\n') && !data.includes('\r')) return `data: ${data}\n`;
  return data
    .split(LINE_END)
    .map((line) => `data: ${line}\n`)
    .join('');
}
