/**
 * A cloud that serves a protocol behind its own door. The codec makes the request as the vendor itself would get it; the platform
 * changes where it goes, what its body holds beside the conversation, and what it is signed with, and reads the cloud's own
 * refusals.
 */
import type { GatewayError } from '../../codecs/canonical/error.ts';
import type { JsonObject } from '../../codecs/canonical/json.ts';
import type { UpstreamAnswer } from '../../codecs/codec.ts';
import type { Dispatcher } from 'undici';
import type { Clock } from '../../streams/clock.ts';
import type { Outgoing } from '../dispatch/outgoing.ts';

/** What of an attempt a platform depends on. */
export interface Asked {
  readonly stream: boolean;
  readonly upstreamModel: string;
}

/** A request that is complete but for what authorises it. */
export interface Unsigned {
  readonly method: 'GET' | 'POST';
  readonly origin: string;
  /** With its query, as it is sent. */
  readonly path: string;
  /** Lower-case names, as they are sent; `host` and `content-length` are the connection's. */
  readonly headers: Readonly<Record<string, string>>;
  /** Undefined where there is none, or where it is made while it is sent. */
  readonly body: string | Uint8Array | undefined;
}

export interface Signed {
  /** By the monotonic clock; undefined: it was never signed. */
  readonly signedAt: number | undefined;
}

/** An answer that is no success, as the Channel's codec reads it. */
export interface Refused {
  readonly answer: UpstreamAnswer;
  /** What was refused in the words of another protocol than the Channel's, already read. */
  readonly error?: GatewayError;
  /** How often the cloud asks that such a request be sent again. */
  readonly repeats?: number;
  /** The credential was the fault, and another one may be had: the same request may go well if it is signed anew. */
  readonly again: boolean;
}

export interface Platform {
  /**
   * The request, with all its headers, as this cloud wants it: its path is the whole path after the origin. `prefix`: the path of
   * the base URL.
   */
  adapt(outgoing: Outgoing, asked: Asked, prefix: string): Outgoing;
  /** The headers that authorise it: at once where a valid credential is at hand. Rejects with a {@link GatewayError}. */
  authorise(request: Unsigned): Readonly<Record<string, string>> | Promise<Readonly<Record<string, string>>>;
  /** Reads the refusal of a request. A credential that was refused is forgotten. */
  refused(answer: UpstreamAnswer, request: Signed): Refused;
  /** Where its models are listed. `prefix`: the path of the base URL. */
  models(prefix: string): ModelListing;
}

export interface ModelListing {
  /** Absent: that of the Channel. */
  readonly origin?: string;
  /** The whole path after the origin. */
  readonly path: string;
  /**
   * Whether a list has the model of this name; undefined where that cannot be told. Absent: it lists other names than those that
   * are asked for.
   */
  has?(list: JsonObject, model: string): boolean | undefined;
}

/** What a platform is made with. */
export interface Means {
  readonly apiKey?: string;
  readonly clock: Clock;
  /** To what is beside the machine. */
  readonly direct: Dispatcher;
  /** To everywhere else. */
  readonly outside: Dispatcher;
}
