/** Runs `decode.cases.md`: each case is also sent on to a chat client, spliced and built anew. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { GatewayError } from '../../../../src/codecs/canonical/error.ts';
import type { CanonicalEvent, ItemHead, Step } from '../../../../src/codecs/canonical/event.ts';
import type { Logprobs, OutputItem } from '../../../../src/codecs/canonical/item.ts';
import { isObject, type JsonObject, parseJson } from '../../../../src/codecs/canonical/json.ts';
import { Order } from '../../../../src/codecs/canonical/order.ts';
import { chatUpstream } from '../../../../src/codecs/chat/index.ts';
import { checkClientEnd, checkClientFrame, type ClientState } from '../../../../src/codecs/chat/lifecycle.ts';
import type { Frame } from '../../../../src/codecs/codec.ts';
import { chunk, decodeContext, encode, frame, plainRequest, withoutNative } from '../support.ts';

const file = readFileSync(new URL('decode.cases.md', import.meta.url), 'utf8');

function cases(): { name: string; tools: string[]; input: string[]; output: string[] }[] {
  return file
    .split(/^## /m)
    .slice(1)
    .map((section) => {
      const block = (kind: string) =>
        new RegExp(`\`\`\`${kind}\\n([\\s\\S]*?)\`\`\``).exec(section)?.[1]?.trimEnd().split('\n') ?? [];
      return { name: section.slice(0, section.indexOf('\n')), tools: block('tools'), input: block('in'), output: block('out') };
    });
}

function frameOf(line: string): Frame {
  let json: JsonObject;
  try {
    const parsed = parseJson(line);
    if (!isObject(parsed)) return frame(line);
    json = parsed;
  } catch {
    return frame(line);
  }
  if (json['choices'] !== undefined || json['error'] !== undefined)
    return frame({ id: 'up-1', created: 1, model: 'up', ...json });
  if (json['code'] !== undefined) return frame(json);
  const { finish, ...delta } = json;
  return chunk(delta, typeof finish === 'string' ? finish : null);
}

function head(value: ItemHead): string {
  return value.kind === 'toolCall' ? `${value.flavour} ${value.callId} ${value.tool.name}` : value.kind;
}

function whole(item: OutputItem): string {
  const opaque = 'opaque' in item && item.opaque !== undefined ? ` opaque=${item.opaque.value}` : '';
  switch (item.kind) {
    case 'text':
      return `text ${JSON.stringify(item.text)}${item.citations.length > 0 ? ` cites=${item.citations.length}` : ''}${scored(item.logprobs)}${opaque}`;
    case 'refusal':
      return `refusal ${JSON.stringify(item.text)}`;
    case 'reasoning': {
      const raw = item.raw === undefined ? '' : ` raw=${JSON.stringify(item.raw)}`;
      const summary = item.summary === undefined ? '' : ` summary=${item.summary.map((part) => JSON.stringify(part)).join('|')}`;
      return `reasoning${raw}${summary}${opaque}`;
    }
    case 'toolCall':
      return `${item.flavour} ${item.callId} ${item.tool.name} ${JSON.stringify(item.input)}${opaque}`;
    case 'media':
      return `media ${item.media.type} ${JSON.stringify(item.media.source)}`;
    case 'native':
      return `native ${JSON.stringify(item.body)}`;
  }
}

function scored(logprobs: Logprobs | undefined): string {
  return logprobs === undefined ? '' : ` scored=${logprobs.map(({ token }) => token).join('|')}`;
}

function line(event: CanonicalEvent): string {
  switch (event.type) {
    case 'response.start':
      return 'start';
    case 'item.start':
      return `${event.index} start ${head(event.head)}`;
    case 'item.delta': {
      const { delta } = event;
      if (delta.kind === 'citation') return `${event.index} citation ${JSON.stringify(delta.citation)}`;
      const part = delta.kind === 'summary' ? ` ${delta.part}` : '';
      return `${event.index} ${delta.kind}${part} ${JSON.stringify(delta.text)}${delta.kind === 'text' ? scored(delta.logprobs) : ''}`;
    }
    case 'item.end':
      return `${event.index} end ${event.status} ${whole(event.item)}`;
    case 'usage.report':
      return `usage ${Object.entries(event.usage)
        .map(([key, value]) => `${key}=${String(value)}`)
        .join(' ')}`;
    case 'native.event':
      return `native ${event.name}`;
    case 'response.end': {
      const { outcome } = event;
      if (outcome.status === 'completed') return `end completed ${outcome.stop}`;
      if (outcome.status === 'incomplete') return `end incomplete ${outcome.reason}`;
      return `end ${outcome.status} ${outcome.error.code} ${outcome.error.details.upstream?.status}`;
    }
  }
}

describe('chat streams', () => {
  for (const { name, tools: declared, input, output } of cases()) {
    it(name, () => {
      const steps: Step[] = [];
      const said: string[] = [];
      try {
        const tools = declared.map((tool) => ({ kind: 'function' as const, tool: { name: tool }, at: 'tools' }));
        const decoder = chatUpstream.decodeEvents(decodeContext({ request: { ...plainRequest, tools } }));
        for (const one of input) decoder.push(frameOf(one), steps);
        if (!decoder.ended) decoder.end(steps);
        const order = new Order();
        for (const step of steps) order.push(step, []);
        order.end();
      } catch (error) {
        if (!(error instanceof GatewayError)) throw error;
        said.push(`! ${error.code} ${error.details.reason}`);
      }
      const lines = [...steps.flatMap(({ events }) => events.map(line)), ...said];
      assert.deepEqual(lines, output);
      for (const variant of [steps, withoutNative(steps)]) {
        let state: ClientState = 'idle';
        const frames = encode(variant);
        for (const data of frames) state = checkClientFrame(state, data);
        checkClientEnd(state);
        const isGood =
          output.at(-1)?.startsWith('end completed') === true || output.at(-1)?.startsWith('end incomplete') === true;
        assert.equal(state, isGood ? 'ended' : 'failed');
      }
    });
  }
});
