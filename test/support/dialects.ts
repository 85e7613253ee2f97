/** The dialects that are spoken on both sides, with what each can say without loss: what the laws are called with. */
import { chatClient, chatUpstream } from '../../src/codecs/chat/index.ts';
import { checkClientEnd, checkClientFrame, type ClientState } from '../../src/codecs/chat/lifecycle.ts';

import type { Frame } from '../../src/codecs/codec.ts';
import { messagesClient, messagesUpstream } from '../../src/codecs/messages/index.ts';
import { checkClientStream } from '../../src/codecs/messages/lifecycle.ts';
import { responsesClient, responsesUpstream } from '../../src/codecs/responses/index.ts';
import { checkResponsesStream } from '../../src/codecs/responses/lifecycle.ts';
import type { Whole } from '../../src/codecs/canonical/fold.ts';
import type { TwoSided } from './laws.ts';
import { meaning, withoutFacts } from './wire.ts';

/**
 * A whole chat message keeps one content, one refusal, its calls and its reasoning, but not their order among each other; texts
 * that something parted and the parts of a summary are joined by an empty line (loss table: 'several texts', 'reasoning: summary'),
 * so line breaks of these are not compared; details win over raw text that came with them in one message.
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
    calls: items.flatMap((item) => (item.kind === 'toolCall' ? [[item.callId, item.tool.name, item.flavour, item.input]] : [])),
    media: items.flatMap((item) => (item.kind === 'media' ? [item.media.source] : [])),
    ...endFacts(whole),
  };
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
    let state: ClientState = 'idle';
    for (const { data } of frames) state = checkClientFrame(state, data);
    checkClientEnd(state);
    return state === 'failed' ? 'failure' : 'success';
  },
};

export const responses: TwoSided = {
  client: responsesClient,
  upstream: responsesUpstream,
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
  check(frames) {
    checkResponsesStream(frames);
    return endsWith(frames, 'response.completed') || endsWith(frames, 'response.incomplete') ? 'success' : 'failure';
  },
};

export const messages: TwoSided = {
  client: messagesClient,
  upstream: messagesUpstream,
  features: { summary: true, opaque: true },
  comparable: messagesFacts,
  check(frames) {
    checkClientStream(frames);
    return endsWith(frames, 'message_stop') ? 'success' : 'failure';
  },
};

export const DIALECTS: readonly TwoSided[] = [chat, responses, messages];

function endsWith(frames: readonly Frame[], event: string): boolean {
  return frames.at(-1)?.event === event;
}
