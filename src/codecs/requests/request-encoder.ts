/** What the request encoders of all protocols do around the body that each of them writes. */
import type { Dialect } from '../canonical/dialect.ts';
import type { RequestLosses } from '../canonical/features.ts';
import type { CanonicalRequest } from '../canonical/request.ts';
import type { Target, UpstreamCodec, UpstreamRequest } from '../codec.ts';
import type { Steps } from '../steps.ts';
import { withDirectTools } from '../tools/function-members.ts';
import { type NameRule, nameAllTools, type ToolNames, verbatimNames } from '../tools/names.ts';
import { refuseForeignBinding } from './foreign-content.ts';
import { Losses } from './losses.ts';
import { mayReplay } from './opaque-replay.ts';
import { ownStops, refuseLongStops, splitStops, type Stops } from './stop-sequences.ts';
import { withoutLosses } from './without-losses.ts';

/** What the parts of a request encoder are given beside the request. */
export interface EncodeContext {
  readonly target: Target;
  readonly names: ToolNames;
  readonly stops: Stops;
  readonly losses: Losses;
}

/** What one protocol says of its requests. */
export interface RequestWriter {
  readonly dialect: Dialect;
  readonly losses: RequestLosses;
  readonly nameRule: NameRule;
  /** How many stop sequences the vendor takes, and which of them; the gateway itself stops at the others. */
  readonly mostStops: number;
  readonly takesStop?: (sequence: string) => boolean;
  /** {@link UpstreamRequest.path}. */
  path(request: CanonicalRequest, target: Target): string;
  headers?(request: CanonicalRequest): Readonly<Record<string, string>>;
  /** The text of a client of the same dialect, with edits. Absent: no client speaks the dialect. */
  splice?(request: CanonicalRequest, target: Target, losses: Losses): Steps<string>;
  /** The body for a client of another dialect. What the loss table drops of the request has been taken out. */
  write(request: CanonicalRequest, context: EncodeContext): Steps<string>;
}

export function requestEncoder(writer: RequestWriter): UpstreamCodec['encodeInSteps'] {
  const { dialect } = writer;
  return function* encodeInSteps(asked, target) {
    const losses = new Losses(writer.losses);
    refuseForeignBinding(asked, dialect);
    if (asked.dialect === dialect && writer.splice !== undefined) {
      const body = yield* writer.splice(asked, target, losses);
      return { ...headOf(writer, asked, target), body, toolNames: verbatimNames, losses: losses.names };
    }
    const request = withDirectTools(
      withoutLosses(asked, losses, (opaque) => mayReplay(opaque, target, dialect)),
      losses,
    );
    yield;
    const names = yield* nameAllTools(request, writer.nameRule);
    yield;
    const stops = splitStops(request.stop, writer.mostStops, writer.takesStop);
    refuseLongStops(stops, asked.dialect);
    if (stops.own !== undefined) losses.note('stop sequences');
    const body = yield* writer.write(request, { target, names, stops, losses });
    return { ...headOf(writer, request, target), body, toolNames: names, ...ownStops(stops), losses: losses.names };
  };
}

function headOf(writer: RequestWriter, request: CanonicalRequest, target: Target): Pick<UpstreamRequest, 'path' | 'headers'> {
  return { path: writer.path(request, target), headers: writer.headers?.(request) ?? {} };
}
