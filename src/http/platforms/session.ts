/**
 * What one Channel behind a platform knows while its configuration lasts: its credential, and the connections to where that comes
 * from. A configuration that changes begins a new one.
 */
import { rootCertificates } from 'node:tls';
import { Agent, type Dispatcher, ProxyAgent } from 'undici';
import type { Framing } from '../../codecs/pipeline.ts';
import type { Clock } from '../../streams/clock.ts';
import type { Channel } from '../config/config.ts';
import { azurePlatform } from './azure/azure.ts';
import { bedrockPlatform } from './bedrock/bedrock.ts';
import { bedrockFraming } from './bedrock/frames.ts';
import type { Means, Platform } from './platform.ts';
import type { PlatformSettings } from './settings.ts';
import { vertexPlatform } from './vertex/vertex.ts';

export type HostedChannel = Channel & { readonly platform: PlatformSettings };

export function isHosted(channel: Channel): channel is HostedChannel {
  return channel.platform !== undefined;
}

/** How the events of a Channel's streams are framed; undefined: as SSE. */
export function framingOf({ platform }: Channel): Framing | undefined {
  return platform?.platform === 'bedrock' ? bedrockFraming : undefined;
}

export class PlatformSession {
  readonly platform: Platform;
  readonly #dispatchers: ReadonlySet<Dispatcher>;

  constructor(channel: HostedChannel, clock: Clock) {
    // A token is asked for once an hour: its connection need not be kept.
    const direct = new Agent({ pipelining: 0 });
    const outside = outsideOf(channel, direct);
    this.#dispatchers = new Set([direct, outside]);
    const means = { ...(channel.apiKey === undefined ? {} : { apiKey: channel.apiKey }), clock, direct, outside };
    this.platform = platformOf(channel.platform, means);
  }

  /** At the end of the process: what is under way fails. */
  close(): void {
    for (const dispatcher of this.#dispatchers) void dispatcher.destroy();
  }
}

function platformOf(settings: PlatformSettings, means: Means): Platform {
  switch (settings.platform) {
    case 'azure':
      return azurePlatform(settings, means);
    case 'bedrock':
      return bedrockPlatform(settings, means);
    case 'vertex':
      return vertexPlatform(settings, means);
  }
}

/** The way of the Channel itself, for token endpoints; its own authorities are trusted beside those of the system. */
function outsideOf({ options: { proxy, ca } }: Channel, direct: Dispatcher): Dispatcher {
  const tls = ca === undefined ? {} : { ca: [...rootCertificates, ca] };
  if (proxy !== undefined) return new ProxyAgent({ uri: proxy, requestTls: tls, pipelining: 0 });
  return ca === undefined ? direct : new Agent({ pipelining: 0, connect: tls });
}
