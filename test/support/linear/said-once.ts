/**
 * What one side says once the other is not told for each of many things: a long name of a namespace before each of its tools, a
 * long link with each place that cites it, would be gigabytes. Each text of every shape of the linearity law is made long, and
 * what comes out may grow by some times as much.
 */
import { GatewayError } from '../../../src/codecs/canonical/error.ts';
import { fold } from '../../../src/codecs/canonical/fold.ts';
import { Order } from '../../../src/codecs/canonical/order.ts';
import { CLIENTS, UPSTREAMS } from '../../../src/codecs/registry.ts';
import { atOnce } from '../../../src/codecs/steps.ts';
import { parseJsonBody } from '../../../src/http/request/body.ts';
import { decodeBytes, decodeContext, encodeSteps, openForTests, ownerOf, responseContext, sseText, targetOf } from '../wire.ts';
import { asked, bodies, streams, upstreamOf } from './answers.ts';
import { SINGLE_SHAPES } from './request-shapes.ts';

/** Of the things in a shape: more than anything may be said again. */
const COUNT = 60;
/** Longer than ids may be, which clients read again in each event. */
const LONG = 'z'.repeat(5_000);
/** A schema is written out at a few of its references. */
const MOST_IN_REQUESTS = 8;
/** A stream says a text in its pieces, whole, in its item and at its end; bytes of tokens are written as numbers. */
const MOST_IN_ANSWERS = 20;
/** Clients read the whole link with each citation: bounded apart (`MAX_CITED` of gemini's citations). */
const BOUNDED_APART = /^stream gemini to (chat|responses): grounding/;

export interface SaidOnce {
  readonly name: string;
  /** The first text that is said too often, and how often; undefined where there is none. */
  readonly tooOften: () => string | undefined;
}

/** The length of what comes out; undefined where the input is refused. */
type Size = (text: string) => number | undefined;

function found(of: (count: number) => string, size: Size, most: number): string | undefined {
  const text = of(COUNT);
  const before = size(text);
  if (before === undefined) return undefined;
  for (const literal of literalsOf(text)) {
    const longer = text.replaceAll(literal, `${literal.slice(0, -1)}${LONG}"`);
    const after = size(longer) ?? before;
    const grown = (after - before) / (longer.length - text.length);
    if (grown > most) return `${literal.slice(0, 60)}: ${grown.toFixed(1)} times, ${most} are allowed`;
  }
  return undefined;
}

/** Values and names, one of those that differ in a number alone. */
function literalsOf(text: string): Iterable<string> {
  const ofAKind = new Map<string, string>();
  for (const [literal] of text.matchAll(/"(?:[^"\\]|\\.)*"/g)) ofAKind.set(literal.replace(/\d+/g, '0'), literal);
  return ofAKind.values();
}

/** Undefined for what the gateway refuses to say. */
function unlessRefused(run: () => number): number | undefined {
  try {
    return run();
  } catch (thrown) {
    if (thrown instanceof GatewayError) return undefined;
    throw thrown;
  }
}

const requests: readonly SaidOnce[] = SINGLE_SHAPES.flatMap(({ dialect, name, body }) =>
  CLIENTS.filter((client) => client.dialect === dialect).flatMap((client) =>
    UPSTREAMS.filter((one, at) => UPSTREAMS.findIndex((other) => other.dialect === one.dialect) === at).map((upstream) => {
      const target = targetOf(ownerOf(upstream), { options: { cacheBreakpoints: 'auto' } });
      const size: Size = (given) =>
        unlessRefused(() => {
          const { text, json } = parseJsonBody(Buffer.from(given));
          const request = atOnce(client.decodeInSteps(text, json, { open: openForTests, item: () => undefined }));
          return upstream.encodeRequest(request, target).body.length;
        });
      const of = (count: number): string => JSON.stringify(body(count));
      return { name: `${dialect} to ${upstream.dialect}: ${name}`, tooOften: () => found(of, size, MOST_IN_REQUESTS) };
    }),
  ),
);

const streamed: readonly SaidOnce[] = streams.flatMap(({ dialect, name, of }) =>
  CLIENTS.map((client) => {
    const upstream = upstreamOf(dialect);
    const request = asked(client.dialect, true);
    const context = responseContext(client, ownerOf(upstream), { request });
    const size: Size = (text) =>
      unlessRefused(() => {
        const { steps, failure } = decodeBytes(upstream, [Buffer.from(text)], { request });
        if (failure !== undefined) throw failure;
        return sseText(encodeSteps(client, steps, context)).length;
      });
    return {
      name: `stream ${dialect} to ${client.dialect}: ${name}`,
      tooOften: () => found((count) => of(count).toString(), size, MOST_IN_ANSWERS),
    };
  }),
);

const whole: readonly SaidOnce[] = bodies.flatMap(({ dialect, name, of }) =>
  CLIENTS.flatMap((client) =>
    [false, true].map((isStreamed) => {
      const upstream = upstreamOf(dialect);
      const owner = ownerOf(upstream);
      const request = asked(client.dialect, isStreamed);
      const context = responseContext(client, owner, { request });
      const size: Size = (text) =>
        unlessRefused(() => {
          const step = upstream.decodeResponse(text, decodeContext(owner, { request }));
          new Order().push(step, []);
          // As `wholeAsSource` does, without the text.
          if (isStreamed) return sseText(encodeSteps(client, [{ events: step.events }], context)).length;
          const native = step.native?.dialect === client.dialect ? step.native : undefined;
          return client.encodeResponse(fold(step.events), native, context).length;
        });
      return {
        name: `whole ${dialect} to ${client.dialect}${isStreamed ? ' as a stream' : ''}: ${name}`,
        tooOften: () => found(of, size, MOST_IN_ANSWERS),
      };
    }),
  ),
);

export const SAID_ONCE: readonly SaidOnce[] = [...requests, ...streamed, ...whole].filter(
  ({ name }) => !BOUNDED_APART.test(name),
);
