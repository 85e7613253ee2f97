/** Contexts and recordings for the chat codec's tests: an injected clock of ids, and a sealer that can be read back. */
import { existsSync, globSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import type { Step } from '../../../src/codecs/canonical/event.ts';
import { isObject, type JsonObject, parseJson } from '../../../src/codecs/canonical/json.ts';
import type { Owner } from '../../../src/codecs/canonical/opaque.ts';
import { Order } from '../../../src/codecs/canonical/order.ts';
import type { CanonicalRequest } from '../../../src/codecs/canonical/request.ts';
import { chatClient, chatUpstream } from '../../../src/codecs/chat/index.ts';
import type { DecodeContext, Frame, RequestContext, ResponseContext, Target } from '../../../src/codecs/codec.ts';
import * as wire from '../../support/wire.ts';

export const owner: Owner = { channelType: 'chat_completion', scope: 'https://up.test', model: 'up-model' };

export const seal = wire.sealForTests;
export const requestContext: RequestContext = { open: wire.openForTests };

export function requestOf(body: JsonObject, text = JSON.stringify(body)): CanonicalRequest {
  return chatClient.decodeRequest(text, body, requestContext);
}

export const plainRequest = requestOf({ model: 'm', messages: [{ role: 'user', content: 'hi' }], stream: true });

export function decodeContext(over: Partial<DecodeContext> = {}): DecodeContext {
  return wire.decodeContext(owner, { request: plainRequest, ...over });
}

export function responseContext(over: Partial<ResponseContext> = {}): ResponseContext {
  const own = { responseId: 'chatcmpl-gateway', model: 'm', createdAt: 1_700_000_000, request: plainRequest };
  return wire.responseContext(chatClient, owner, { ...own, ...over });
}

export function target(over: Partial<Target> = {}): Target {
  return wire.targetOf(owner, over);
}

export const frame = (data: unknown): Frame => ({
  event: undefined,
  data: typeof data === 'string' ? data : JSON.stringify(data),
});

export const chunk = (delta: JsonObject, finish: string | null = null, rest: JsonObject = {}): Frame =>
  frame({
    id: 'up-1',
    object: 'chat.completion.chunk',
    created: 1,
    model: 'up-model',
    choices: [{ index: 0, delta, finish_reason: finish }],
    ...rest,
  });

/** Decodes and checks the canonical order. Throws what the decoder throws. */
export function decode(frames: readonly Frame[], context: DecodeContext = decodeContext()): { steps: Step[]; order: Order } {
  const decoder = chatUpstream.decodeEvents(context);
  const steps: Step[] = [];
  for (const one of frames) decoder.push(one, steps);
  if (!decoder.ended) decoder.end(steps);
  const order = new Order();
  const checked: Step[] = [];
  for (const step of steps) order.push(step, checked);
  if (!order.ended) order.end();
  return { steps, order };
}

export const withoutNative = (steps: readonly Step[]): Step[] => steps.map(({ events }) => ({ events }));

export function encode(steps: readonly Step[], context: ResponseContext = responseContext()): string[] {
  const encoder = chatClient.encodeEvents(context);
  const out: Frame[] = [];
  for (const step of wire.inOrder(steps)) encoder.push(step, out);
  if (!encoder.ended) encoder.end(out);
  return out.map(({ data }) => data);
}

export interface Recording {
  readonly name: string;
  readonly text: string;
}

const root = process.env['MIZU_FIXTURES'];
export const noRecordings = root === undefined || !existsSync(root) ? 'MIZU_FIXTURES is not set' : false;

export function recordings(folders: string): Recording[] {
  if (noRecordings !== false || root === undefined) return [];
  return globSync(join(root, 'recordings', folders, '*.{sse,json,txt}'))
    .sort()
    .map((path) => ({ name: `${basename(dirname(path))}/${basename(path)}`, text: readFileSync(path, 'utf8') }));
}

export const isStream = (name: string): boolean => name.endsWith('.sse') || name.endsWith('.chunks.txt');

/** The answers that one file holds: `.chunks.txt` may hold several, each with its own id. */
export function framesOf({ name, text }: Recording): Frame[][] {
  if (name.endsWith('.chunks.txt')) return splitById(text.split('\n').filter((line) => line.trim() !== ''));
  const frames: Frame[] = [];
  for (const block of text.replaceAll('\r\n', '\n').split(/\n\n+/)) {
    let event: string | undefined;
    const data: string[] = [];
    for (const line of block.split('\n')) {
      if (line.startsWith('data:')) data.push(line.slice(5).replace(/^ /, ''));
      else if (line.startsWith('event:')) event = line.slice(6).trim();
    }
    if (data.length > 0) frames.push({ event, data: data.join('\n') });
  }
  return [frames];
}

function splitById(lines: readonly string[]): Frame[][] {
  const answers: Frame[][] = [];
  let last: unknown;
  for (const line of lines) {
    const json = parseJson(line);
    const id = isObject(json) ? json['id'] : undefined;
    if (answers.length === 0 || (id !== last && last !== '')) answers.push([]);
    last = id;
    answers.at(-1)?.push({ event: undefined, data: line });
  }
  return answers.map((frames) => [...frames, { event: undefined, data: '[DONE]' }]);
}
