/**
 * The configuration as the gateway uses it: checked, with defaults, secrets resolved, frozen. One snapshot serves a whole
 * request; a reload makes a new one. Knows no file and no environment (`parse.ts`, `source.ts`).
 */
import type { BlockList } from 'node:net';
import type { ChannelType } from '../../codecs/canonical/dialect.ts';
import type { CodecOptions, ModelFacts } from '../../codecs/codec.ts';
import type { ImageDefaults } from '../../codecs/images/upstream.ts';
import type { ModelKind, Rates } from '../../store/prices.ts';
import type { RateLimits } from '../../store/rate-limits.ts';
import type { PlatformSettings } from '../platforms/settings.ts';
import type { Camel } from './schema-terms.ts';
import type { ChannelEntry, HostedEntry, SectionOf } from './schema.ts';

/**
 * A Channel may map `{model}-openai-compact`: the upstream model that compacts conversations of `model`, at the price of `model`.
 */
export const COMPACT_SUFFIX = '-openai-compact';

export type Timeouts = Camel<SectionOf<'timeouts'>>;

export type AuthStyle = NonNullable<Exclude<ChannelEntry, HostedEntry>['options']['auth']>;

export interface ChannelOptions {
  readonly path?: string;
  readonly auth: AuthStyle;
  /** Lower-case names; null leaves the header out. */
  readonly headers: ReadonlyMap<string, string | null>;
  /** Lower-case names of client headers that are passed on. */
  readonly forwardHeaders: ReadonlySet<string>;
  /** Top-level members to set, as JSON text. */
  readonly parameters: ReadonlyMap<string, string>;
  readonly dropParameters: readonly string[];
  readonly proxy?: string;
  readonly ca?: string;
  readonly maxConcurrency?: number;
  readonly maxQueue: number;
  readonly queueMs: number;
  /** Repeats of this Channel in one exchange, when all others have failed too. */
  readonly retries: number;
  /** Compaction by a summary of the model, in place of the upstream's own endpoint. */
  readonly compaction?: 'summary';
  /** The turns of WebSocket clients are asked over a WebSocket. */
  readonly websocket: boolean;
}

export interface Channel {
  readonly id: string;
  readonly type: ChannelType;
  /** The cloud that it is reached through; undefined: none. */
  readonly platform?: PlatformSettings;
  /** `https://host:port`: where connections go. */
  readonly origin: string;
  /** The path of `base_url` as it was given, without a slash at its end. */
  readonly basePath: string;
  /** `basePath` with the version that the endpoint is appended to. */
  readonly versionedPath: string;
  readonly apiKey?: string;
  readonly priority: number;
  readonly weight: number;
  /** Undefined: every account class. */
  readonly classes?: ReadonlySet<string>;
  /** Logical to upstream. */
  readonly models: ReadonlyMap<string, string>;
  readonly timeouts: Timeouts;
  readonly fileScope?: string;
  readonly opaqueScope: string;
  readonly codec: CodecOptions;
  readonly options: ChannelOptions;
  readonly image: { readonly generationTool: boolean; readonly defaults: ImageDefaults };
  /** Undefined for a type that makes no videos. */
  readonly video?: { readonly apiVersion: 'v1' | 'v2'; readonly pollIntervalMs: number; readonly pollDeadlineS?: number };
  /** Changes when anything of it changes: a pool of connections belongs to one fingerprint. Holds no secret in clear. */
  readonly fingerprint: string;
}

export interface Model {
  readonly name: string;
  readonly kind: ModelKind;
  /** Undefined: without a price it is neither listed nor served. */
  readonly rates?: Rates;
  /** Where the price was found in the price book; absent: it is the model's own. */
  readonly bookPrice?: BookSource;
  /** Models that are tried when its own Channels have failed, by name. */
  readonly fallbacks: readonly string[];
  readonly facts: ModelFacts;
  readonly maxOutputTokens?: number;
  /** Whether it may reason out of sight. */
  readonly mayReason: boolean;
  readonly compaction?: 'summary';
  /** Of all requests for it together. */
  readonly rateLimits?: RateLimits;
}

/** Under which balances and leftovers the ledger tells of it. */
export interface LedgerThresholds {
  /** Nano-dollars; undefined: never. */
  readonly balanceNanos?: bigint;
  /** The share of a spend limit that is left. 0: never. */
  readonly window: number;
  /** Balances of accounts with a threshold of their own, by name or id. */
  readonly accounts: ReadonlyMap<string, bigint>;
}

/** An entry of the price book, with its members that have no place in a price of ours. */
export interface BookSource {
  readonly entry: string;
  readonly ignored: readonly string[];
}

/** Limits of one API key in one process. */
export interface KeyLimits {
  readonly exchanges: number;
  /** Each JSON value counts beside the bytes. */
  readonly bodyBytes: number;
  /** The same of all keys together. */
  readonly allBytes: number;
}

/** The limits of the file; those of one API key are a group of their own. */
export type Limits = Omit<Camel<SectionOf<'limits'>>, 'keyExchanges' | 'keyBodyBytes' | 'bodyBytes'> & {
  readonly key: KeyLimits;
};

/** The most bytes that are kept: of one conversation, of one key, in all. */
export type HistoryLimits = Camel<SectionOf<'history'>>;

/** `messageBytes`: one message of a client. */
export type WebSocketLimits = Camel<SectionOf<'websocket'>> & { readonly messageBytes: number };

export interface OperationsAddress {
  readonly host: string;
  readonly port: number;
  readonly chosen: boolean;
  /** PEM texts: it speaks HTTPS. */
  readonly tls?: { readonly cert: string; readonly key: string };
}

export interface Config {
  /** Rises with every accepted reload. */
  readonly revision: number;
  readonly loadedAtMs: number;
  readonly listen: SectionOf<'listen'>;
  /**
   * `chosen: false`: the default address, which another gateway on this machine may already have; the gateway then runs without.
   */
  readonly operations?: OperationsAddress;
  readonly publicBaseUrl?: string;
  readonly role: SectionOf<'node'>['role'];
  /** The embedded store, or, with `storeUrl`, the folder of what must wait on the local disk. */
  readonly storePath: string;
  /** The admin API makes backups below it, and nowhere else. */
  readonly backupsPath: string;
  /** A PostgreSQL database that holds the store instead. */
  readonly storeUrl?: string;
  readonly trustedProxies: BlockList;
  readonly durability: SectionOf<'ledger'>['durability'];
  /** What becomes of a request with a server tool whose calls the price has no rate for. */
  readonly unpricedTools: SectionOf<'ledger'>['unpriced_tools'];
  /** What becomes of a request with any other member that changes the vendor's price and has no price here. */
  readonly unpriced: SectionOf<'ledger'>['unpriced'];
  readonly alerts: LedgerThresholds;
  /** What a failure before any output costs that reported usage. */
  readonly chargeFailures: SectionOf<'ledger'>['charge_failures'];
  readonly log: Camel<SectionOf<'log'>>;
  /** Undefined: no traces. */
  readonly tracing?: Camel<NonNullable<SectionOf<'tracing'>>>;
  readonly limits: Limits;
  readonly dispatch: Camel<SectionOf<'dispatch'>>;
  readonly health: Camel<SectionOf<'health'>>;
  /** Stored response history. */
  readonly history: HistoryLimits;
  readonly websocket: WebSocketLimits;
  readonly affinity: Camel<SectionOf<'affinity'>>;
  readonly writeStallMs: number;
  readonly commitAfterMs: number;
  readonly keepAliveMs: number;
  readonly warmUpMs: number;
  /** 0: a worker may be silent for ever. */
  readonly workerSilenceMs: number;
  readonly drainMs: number;
  readonly channelHeader: boolean;
  readonly channels: readonly Channel[];
  /** Nothing is ever sent to them; that their models exist is all that is still known of them. */
  readonly disabledChannels: readonly Channel[];
  readonly models: ReadonlyMap<string, Model>;
  /** Limits of account classes that have any, each of all its accounts together. */
  readonly classes: ReadonlyMap<string, RateLimits>;
}
