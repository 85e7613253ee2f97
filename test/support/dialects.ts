/** The dialects that are spoken on both sides, with what each can say without loss: what the laws are called with. */
import { chatClient, chatUpstream } from '../../src/codecs/chat/index.ts';
import { checkChatStream } from './client-order/chat.ts';

import type { Frame } from '../../src/codecs/codec.ts';
import { messagesClient, messagesUpstream } from '../../src/codecs/messages/index.ts';
import { checkMessagesStream } from './client-order/messages.ts';
import { responsesClient, responsesUpstream } from '../../src/codecs/responses/index.ts';
import { checkResponsesStream } from './client-order/responses.ts';
import { bedrockFraming } from '../../src/http/platforms/bedrock/frames.ts';
import { chunkMessage } from '../../src/simulator/clouds/event-stream.ts';
import type { Whole } from '../../src/codecs/canonical/fold.ts';
import type { Media, OutputItem } from '../../src/codecs/canonical/item.ts';
import { type TwoSided, type UpstreamSide, writtenBy } from './laws.ts';
import { geminiUpstream } from '../../src/codecs/gemini/index.ts';
import { writeGemini } from './gemini-wire.ts';
import { meaning, withoutFacts } from './wire.ts';

/**
 * A whole chat message keeps one content, one refusal, its calls and its reasoning, but not their order among each other; texts
 * that something parted and the parts of a summary are joined by an empty line (loss table: 'several texts', 'reasoning:
 * summary'), so line breaks of these are not compared; details win over raw text that came with them in one message.
 */
function chatFacts(whole: Whole): unknown {
  const items = whole.items.map(({ item }) => item);
  const reasoning = items.flatMap((item) => (item.kind === 'reasoning' ? [item] : []));
  const summaries = reasoning.flatMap(({ summary = [] }) => summary).join('');
  const texts = items.flatMap((item) => (item.kind === 'text' ? [item] : []));
  return {
    raw: summaries === '' ? reasoning.map(({ raw = '' }) => raw).join('') : undefined,
    summaries: summaries.replaceAll('\n', ''),
    opaque: reasoning.flatMap(({ opaque }) => (opaque === undefined ? [] : [opaque.value])).sort(),
    text: texts
      .map(({ text }) => text)
      .join('')
      .replaceAll('\n', ''),
    cited: texts.flatMap(({ citations }) => citations.map((citation) => (citation.kind === 'url' ? citation.url : ''))),
    refusal: items.map((item) => (item.kind === 'refusal' ? item.text : '')).join(''),
    calls: items.flatMap((item) => (item.kind === 'toolCall' ? [[item.callId, item.tool.name, item.toolType, item.input]] : [])),
    // Two members of a message: which came first is said by a stream alone.
    images: sourcesOf(items, 'image'),
    audio: sourcesOf(items, 'audio'),
    ...endFacts(whole),
  };
}

function sourcesOf(items: readonly OutputItem[], type: Media['type']): Media['source'][] {
  return items.flatMap((item) => (item.kind === 'media' && item.media.type === type ? [item.media.source] : []));
}

function endFacts(whole: Whole): object {
  const { usage, outcome } = meaning(whole) as { usage: unknown; outcome: unknown };
  return { usage, outcome };
}

/** Thinking is one text: summary parts become paragraphs of it. A part of a message has no status of its own. */
function messagesFacts(whole: Whole): unknown {
  const items = whole.items.map(({ item }) => {
    const said = withoutFacts(item);
    return said.kind === 'reasoning' && said.summary !== undefined ? { ...said, summary: said.summary.join('\n\n') } : said;
  });
  return { items, ...endFacts(whole) };
}

/** The parts of one message share its status. */
function responsesFacts(whole: Whole): unknown {
  const items = whole.items.map(({ item, status }) => ({
    ...withoutFacts(item),
    ...(item.kind === 'toolCall' ? { status } : {}),
  }));
  return { items, ...endFacts(whole) };
}

export const chat: TwoSided = {
  client: chatClient,
  upstream: chatUpstream,
  write: writtenBy(chatClient, chatUpstream),
  terminal: /data: [^\n]*"finish_reason":"/g,
  features: {
    refusal: true,
    custom: true,
    citations: true,
    logprobs: true,
    raw: true,
    summary: true,
    opaque: true,
    images: true,
  },
  comparable: chatFacts,
  check(frames) {
    return checkChatStream(frames.map(({ data }) => data)) === 'failed' ? 'failure' : 'success';
  },
};

export const responses: TwoSided = {
  client: responsesClient,
  upstream: responsesUpstream,
  write: writtenBy(responsesClient, responsesUpstream),
  terminal: /event: response\.(completed|incomplete|failed)\n/g,
  features: {
    refusal: true,
    custom: true,
    citations: true,
    logprobs: true,
    phase: true,
    raw: true,
    summary: true,
    opaque: true,
    images: true,
  },
  comparable: responsesFacts,
  check(frames, isNative) {
    checkResponsesStream(frames, isNative);
    return endsWith(frames, 'response.completed') || endsWith(frames, 'response.incomplete') ? 'success' : 'failure';
  },
};

export const messages: TwoSided = {
  client: messagesClient,
  upstream: messagesUpstream,
  write: writtenBy(messagesClient, messagesUpstream),
  terminal: /event: message_stop\n/g,
  features: { summary: true, opaque: true },
  comparable: messagesFacts,
  check(frames) {
    checkMessagesStream(frames);
    return endsWith(frames, 'message_stop') ? 'success' : 'failure';
  },
};

/**
 * Arguments are objects there: their spelling is the sender's. Neighbouring texts and thoughts are one. Sources that come after
 * their signed text has ended stand in an empty one.
 */
function geminiFacts(whole: Whole): unknown {
  const items = whole.items
    .map(({ item }) => item)
    .filter((item) => item.kind !== 'text' || item.text !== '' || item.citations.length === 0);
  return {
    said: items.map(({ kind }) => kind).filter((kind, index, all) => kind !== all[index - 1]),
    text: items.map((item) => (item.kind === 'text' ? item.text : '')).join(''),
    thought: items.map((item) => (item.kind === 'reasoning' ? (item.summary ?? []).join('') : '')).join(''),
    // Without positions one citation of a source says all.
    cited: new Set(
      whole.items.flatMap(({ item }) =>
        item.kind === 'text' ? item.citations.flatMap((one) => (one.kind === 'url' ? [one.url] : [])) : [],
      ),
    ).size,
    calls: items.flatMap((item) => (item.kind === 'toolCall' ? [[item.tool.name, JSON.parse(item.input)]] : [])),
    media: items.flatMap((item) => (item.kind === 'media' ? [item.media.source] : [])),
    opaque: items.flatMap((item) => ('opaque' in item && item.opaque !== undefined ? [item.opaque.value] : [])),
    ...endFacts(whole),
  };
}

export const gemini: UpstreamSide = {
  upstream: geminiUpstream,
  write: writeGemini,
  terminal: /"finishReason"/g,
  features: { citations: true, summary: true, opaque: true, images: true, toolSignature: true, textSignature: true },
  comparable: geminiFacts,
};

/** The events of a messages stream as Bedrock frames them. */
export function asBedrock(sse: Uint8Array): Uint8Array {
  const events = Buffer.from(sse)
    .toString()
    .matchAll(/(?:^|\n)data: ?([^\r\n]*)/g);
  return Buffer.concat([...events].map(([, json = '']) => chunkMessage(json)));
}

/** The start of the last message. */
function lastMessage(bytes: Uint8Array): number {
  const view = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let at = 0;
  for (;;) {
    const next = at + view.readUInt32BE(at);
    if (next >= view.length) return at;
    at = next;
  }
}

/** Messages behind Bedrock: the same events in another framing. */
export const bedrock: UpstreamSide = {
  ...messages,
  name: 'bedrock',
  write: (...said) => asBedrock(messages.write(...said)),
  terminal: lastMessage,
  framing: bedrockFraming,
  framed: asBedrock,
};

export const DIALECTS: readonly TwoSided[] = [chat, responses, messages];
export const UPSTREAMS: readonly UpstreamSide[] = [...DIALECTS, gemini];

function endsWith(frames: readonly Frame[], event: string): boolean {
  return frames.at(-1)?.event === event;
}
