/** The only file that names every protocol. Adding one is a folder and a line here. */
import { chatClient, chatUpstream } from './chat/index.ts';
import type { ClientCodec, UpstreamCodec } from './codec.ts';
import { type CodecSet, codecSet } from './codec-set.ts';
import { completionsClient } from './completions/index.ts';
import { geminiUpstream } from './gemini/index.ts';
import { messagesClient, messagesUpstream } from './messages/index.ts';
import { responsesClient, responsesUpstream } from './responses/index.ts';

export const CLIENTS: readonly ClientCodec[] = [chatClient, completionsClient, responsesClient, messagesClient];
export const UPSTREAMS: readonly UpstreamCodec[] = [chatUpstream, responsesUpstream, messagesUpstream, geminiUpstream];

/** A word for each upstream: its dialect; for one that speaks the dialect of one before it, its Channel type. */
export const UPSTREAM_NAMES: ReadonlyMap<string, UpstreamCodec> = new Map(
  UPSTREAMS.map((codec) => {
    const { dialect, channelType } = codec;
    return [UPSTREAMS.find((one) => one.dialect === dialect) === codec ? dialect : channelType, codec];
  }),
);

export const codecs: CodecSet = codecSet(CLIENTS, UPSTREAMS);
