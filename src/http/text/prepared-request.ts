/** A request of a text endpoint whose body was read and whose history was found. The same for HTTP and for a WebSocket turn. */
import type { JsonObject } from '../../codecs/canonical/json.ts';
import type { CanonicalRequest } from '../../codecs/canonical/request.ts';
import type { RequestContext } from '../../codecs/codec.ts';
import type { Principal } from '../../store/keys.ts';
import type { UpstreamLink } from '../dispatch/call-upstream.ts';
import type { OwnInput } from '../history/client-path.ts';
import type { Remember } from '../history/remembering.ts';

export interface PreparedRequest {
  readonly principal: Principal;
  /** The body, with the history that it named in it. */
  readonly text: string;
  readonly json: JsonObject;
  /** Where in its input a summary of an earlier compaction stands as a message. */
  readonly summaries?: ReadonlySet<number>;
  /** The response that it continues: shown in the answer. */
  readonly previousResponseId?: string;
  readonly responseId?: string;
  /** Looks up the content of an item that the input only names. */
  readonly item?: RequestContext['item'];
  /** The transport implies a stream, whatever the body says. */
  readonly stream?: true;
  /** Which items a Channel stored itself. */
  readonly stored?: (channelId: string) => (itemId: string) => boolean;
  readonly remember?: Remember;
  /** Refuses a decoded request that this transport does not take. */
  readonly inspect?: (request: CanonicalRequest) => void;
  /** The connection over which its Channel may be asked; `preferred` is the Channel that has begun to answer it there. */
  readonly link?: UpstreamLink & { readonly preferred: string | undefined };
  /** Where the client's own input stands in `text`, when it is not all of it. */
  readonly own?: OwnInput;
}
