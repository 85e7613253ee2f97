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

export const codecs: CodecSet = codecSet(CLIENTS, UPSTREAMS);
