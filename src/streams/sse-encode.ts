/**
 * Frames of a server-sent event stream (https://html.spec.whatwg.org/multipage/server-sent-events.html). A frame is always whole:
 * one event with its blank line, or one comment.
 */

/** Keeps a connection open and is no event. */
export const SSE_KEEP_ALIVE = ': keep-alive\n\n';

/** One event before it is framed. */
export interface EventText {
  readonly event: string | undefined;
  readonly data: string;
  /**
   * `data` holds no line end, as nothing that JSON.stringify wrote does: to look would cost a copy of a text that is still in
   * pieces.
   */
  readonly oneLine?: boolean;
}

/** Events of one name that differ in a piece alone: the data of each is `head`, its piece and `tail`, without a line end. */
export interface EventRun {
  readonly event: string | undefined;
  readonly head: string;
  readonly pieces: readonly string[];
  readonly tail: string;
}

const LINE_END = /\r\n|\r|\n/;

/**
 * Frames the events of one stream; what repeats from event to event is made once. Every line of `data` becomes a data line (a
 * reader gets LF for any line end). Never throws: a name that no reader could get (empty, or with a line end) is left out.
 */
export function createSseFramer(): (event: EventText | EventRun) => string {
  let name: string | undefined;
  let eventLine = '';
  let beginning = 'data: ';
  return (framed) => {
    const { event } = framed;
    if (event !== name) {
      name = event;
      eventLine = event === undefined || event === '' || hasLineEnd(event) ? '' : `event: ${event}\n`;
      beginning = `${eventLine}data: `;
    }
    if ('pieces' in framed) {
      const { head, pieces, tail } = framed;
      return `${beginning}${head}${pieces.join(`${tail}\n\n${beginning}${head}`)}${tail}\n\n`;
    }
    const { data, oneLine } = framed;
    return oneLine === true || !hasLineEnd(data) ? `${beginning}${data}\n\n` : `${eventLine}${dataLines(data)}\n`;
  };
}

function dataLines(data: string): string {
  return data
    .split(LINE_END)
    .map((line) => `data: ${line}\n`)
    .join('');
}

export function hasLineEnd(text: string): boolean {
  return text.includes('\n') || text.includes('\r');
}
