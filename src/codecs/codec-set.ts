/** Looks up codecs: by the dialect of a client, and by the type of a Channel. */
import type { ChannelType, Dialect } from './canonical/dialect.ts';
import type { ClientCodec, UpstreamCodec } from './codec.ts';

export interface CodecSet {
  /** Throws for a dialect that no client speaks. */
  client(dialect: Dialect): ClientCodec;
  /** Throws for a Channel type that serves no text. */
  upstream(channelType: ChannelType): UpstreamCodec;
  /** Channel types that serve text. */
  readonly textTypes: ReadonlySet<ChannelType>;
  /** Channel types that speak this dialect. */
  typesOf(dialect: Dialect): ReadonlySet<ChannelType>;
}

const NO_TYPES: ReadonlySet<ChannelType> = new Set();

export function codecSet(clients: readonly ClientCodec[], upstreams: readonly UpstreamCodec[]): CodecSet {
  const byDialect = new Map(clients.map((codec) => [codec.dialect, codec]));
  const byType = new Map(upstreams.map((codec) => [codec.channelType, codec]));
  const types = new Map<Dialect, Set<ChannelType>>();
  for (const { dialect, channelType } of upstreams) types.set(dialect, (types.get(dialect) ?? new Set()).add(channelType));
  return {
    client: (dialect) => known(byDialect.get(dialect), dialect),
    upstream: (channelType) => known(byType.get(channelType), channelType),
    textTypes: new Set(byType.keys()),
    typesOf: (dialect) => types.get(dialect) ?? NO_TYPES,
  };
}

function known<Codec>(codec: Codec | undefined, name: string): Codec {
  if (codec === undefined) throw new Error(`no text codec speaks ${name}`);
  return codec;
}
