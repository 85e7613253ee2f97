/** Looks up codecs: by the dialect of a client, and by the type of a Channel. */
import type { ChannelType, Dialect } from './canonical/dialect.ts';
import type { ClientCodec, UpstreamCodec } from './codec.ts';

export interface CodecSet {
  client(dialect: Dialect): ClientCodec | undefined;
  upstream(channelType: ChannelType): UpstreamCodec | undefined;
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
    client: (dialect) => byDialect.get(dialect),
    upstream: (channelType) => byType.get(channelType),
    textTypes: new Set(byType.keys()),
    typesOf: (dialect) => types.get(dialect) ?? NO_TYPES,
  };
}
