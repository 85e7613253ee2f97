/** The only file that names every protocol. Adding one is a folder and a line here. */
import type { ClientCodec, UpstreamCodec } from './codec.ts';
import { type CodecSet, codecSet } from './codec-set.ts';
import { geminiUpstream } from './gemini/index.ts';
import { messagesClient, messagesUpstream } from './messages/index.ts';

export const CLIENTS: readonly ClientCodec[] = [messagesClient];
export const UPSTREAMS: readonly UpstreamCodec[] = [messagesUpstream, geminiUpstream];

export const codecs: CodecSet = codecSet(CLIENTS, UPSTREAMS);
