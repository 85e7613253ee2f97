/**
 * The longest step of a request at the limits that are there by default: what nobody else has a turn in. In processor
 * time, since what else runs on the machine says nothing about it.
 */
import { GatewayError } from '../../../src/codecs/canonical/error.ts';
import type { UpstreamCodec } from '../../../src/codecs/codec.ts';
import { scanJson } from '../../../src/codecs/json/scan.ts';
import { CLIENTS, UPSTREAMS } from '../../../src/codecs/registry.ts';
import type { Steps } from '../../../src/codecs/steps.ts';
import { estimateInSteps } from '../../../src/http/money/estimate.ts';
import { parseJsonBodyInSteps } from '../../../src/http/request/body.ts';
import { openForTests, ownerOf, targetOf } from '../wire.ts';
import { type RequestShape, SINGLE_SHAPES } from './request-shapes.ts';

/** Just under `limits.json_values` and `limits.object_members`, and half of `limits.json_bytes`. */
const MOST = { values: 249_000, bytes: 16_000_000, members: 49_900, count: 400_000 };
/** Two sizes from which it is seen what one more element adds. */
const [LESS, MORE] = [200, 400];

export interface LargestRequest {
  readonly name: string;
  /** Does all steps once; returns the longest, in milliseconds of processor time. */
  readonly longestStep: () => number;
}

/** Every shape of every client for one upstream of each dialect. */
export const LARGEST_REQUESTS: readonly LargestRequest[] = SINGLE_SHAPES.flatMap((shape) =>
  UPSTREAMS.filter((one, at) => UPSTREAMS.findIndex(({ dialect }) => dialect === one.dialect) === at).map((upstream) => ({
    name: `${shape.dialect} to ${upstream.dialect}: ${shape.name}`,
    longestStep: () => longestStep(shape, upstream),
  })),
);

function longestStep(shape: RequestShape, upstream: UpstreamCodec): number {
  const client = CLIENTS.find(({ dialect }) => dialect === shape.dialect);
  if (client === undefined) throw new Error(`no client speaks ${shape.dialect}`);
  const target = targetOf(ownerOf(upstream), { options: { cacheBreakpoints: 'auto' } });
  const bytes = Buffer.from(JSON.stringify(shape.body(largestCount(shape))));
  const all = function* (): Steps<void> {
    const { text, json } = yield* parseJsonBodyInSteps(bytes);
    const request = yield* client.decodeInSteps(text, json, { open: openForTests, item: () => undefined });
    yield;
    yield* estimateInSteps(request);
    yield;
    yield* upstream.encodeInSteps(request, target);
  };
  let longest = 0;
  const steps = all();
  try {
    for (let isDone = false; !isDone; ) {
      const before = process.threadCpuUsage();
      isDone = steps.next().done === true;
      const { user, system } = process.threadCpuUsage(before);
      longest = Math.max(longest, (user + system) / 1000);
    }
  } catch (thrown) {
    // Some bodies cannot be said there.
    if (!(thrown instanceof GatewayError && thrown.blame === 'client')) throw thrown;
  }
  return longest;
}

function largestCount(shape: RequestShape): number {
  const [less, more] = [sizeOf(shape, LESS), sizeOf(shape, MORE)];
  const most = (what: keyof Size): number => MOST[what] / Math.max(1e-4, (more[what] - less[what]) / (MORE - LESS));
  return Math.floor(Math.min(most('values'), most('bytes'), most('members'), MOST.count));
}

interface Size {
  readonly values: number;
  readonly bytes: number;
  /** Of the object that has most. */
  readonly members: number;
}

function sizeOf(shape: RequestShape, count: number): Size {
  const body = shape.body(count);
  const text = JSON.stringify(body);
  const figures = scanJson(text, ANY);
  if (typeof figures === 'string') throw new Error('nothing bounds it');
  return { values: figures.values, bytes: text.length, members: mostMembers(body) };
}

const ANY = { depth: Number.POSITIVE_INFINITY, values: Number.POSITIVE_INFINITY, members: Number.POSITIVE_INFINITY };

function mostMembers(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  const children: unknown[] = Object.values(value);
  return children.reduce<number>((most, child) => Math.max(most, mostMembers(child)), Array.isArray(value) ? 0 : children.length);
}
