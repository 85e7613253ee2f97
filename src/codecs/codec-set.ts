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

export function codecSet(clients: readonly ClientCodec[], upstreams: readonly UpstreamCodec[]): CodecSet {
  const byDialect = new Map(clients.map((codec) => [codec.dialect, codec]));
  const byType = new Map(upstreams.map((codec) => [codec.channelType, codec]));
  return {
    client: (dialect) => byDialect.get(dialect),
    upstream: (channelType) => byType.get(channelType),
    textTypes: new Set(byType.keys()),
    typesOf: (dialect) => new Set(upstreams.filter((codec) => codec.dialect === dialect).map(({ channelType }) => channelType)),
  };
}
