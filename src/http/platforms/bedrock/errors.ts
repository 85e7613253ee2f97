/**
 * Bedrock's exceptions as errors of the messages protocol. What is about the Channel's own map of models, its region or its
 * rights to a model becomes a 404 whatever its status: it rests the Channel for that model, and is not the client's to mend.
 */
import { isObject, tryJson } from '../../../codecs/canonical/json.ts';
import type { UpstreamAnswer } from '../../../codecs/codec.ts';
import { textOf } from '../../../codecs/errors/upstream.ts';
import type { Refused } from '../platform.ts';

interface Meaning {
  readonly status: number;
  readonly type: string;
  /** How often AWS's own packages send such a request again. */
  readonly repeats?: number;
}

const api: Meaning = { status: 500, type: 'api_error' };
const limited: Meaning = { status: 429, type: 'rate_limit_error' };
const busy: Meaning = { status: 503, type: 'overloaded_error' };
const wrong: Meaning = { status: 400, type: 'invalid_request_error' };
const refused: Meaning = { status: 403, type: 'permission_error' };
const unsigned: Meaning = { status: 401, type: 'authentication_error' };
const missing: Meaning = { status: 404, type: 'not_found_error' };

/**
 * By the name of the exception in small letters, without its ending: that of an operation, of the service as a whole, or of a
 * stream (https://docs.aws.amazon.com/bedrock/latest/userguide/troubleshooting-api-error-codes.html).
 */
const MEANINGS: Readonly<Record<string, Meaning>> = {
  throttling: limited,
  toomanyrequests: limited,
  servicequotaexceeded: limited,
  modelnotready: { ...busy, repeats: 5 },
  serviceunavailable: busy,
  modeltimeout: { status: 504, type: 'timeout_error' },
  modelerror: api,
  modelstreamerror: api,
  internalserver: api,
  internalfailure: api,
  // Of what happens beside the request, which is not its fault.
  conflict: { status: 409, type: 'api_error' },
  validation: wrong,
  accessdenied: refused,
  notauthorized: refused,
  optinrequired: refused,
  invalidaction: missing,
  unknownoperation: missing,
  resourcenotfound: missing,
  ftuformnotfilled: missing,
  expiredtoken: unsigned,
  unrecognizedclient: unsigned,
  invalidsignature: unsigned,
  signaturedoesnotmatch: unsigned,
  missingauthenticationtoken: unsigned,
  incompletesignature: unsigned,
  invalidclienttokenid: unsigned,
  requestexpired: unsigned,
};

/** Only the vendor's own sentences, which quote nothing of the client. */
const ABOUT_MODEL =
  /^(the provided model identifier is invalid|could not resolve the foundation model|invocation of model id .{1,300} with on-demand throughput isn.t supported|you don.t have access to the model|access to (this|the) model|this model (is not available|version has reached)|operation not allowed|model access is denied|the model is not supported in (this|the) region)/i;
/** A right to one model, or to all of an account. */
const LACKS_RIGHT = /^user: .{1,300} is not authorized to perform: bedrock:invokemodel\w* on resource: \S+/i;
const ABOUT_ACCOUNT = /^(your account is not authorized to invoke this api operation|access to anthropic models is not allowed)/i;

function meaningOf(name: string, message: string): Meaning | undefined {
  const known = MEANINGS[name.toLowerCase().replace(/(exception|error)$/, '')];
  if (known !== wrong && known !== refused) return known;
  if (ABOUT_MODEL.test(message) || (known === refused && LACKS_RIGHT.test(message))) return missing;
  return ABOUT_ACCOUNT.test(message) ? refused : known;
}

/** The body of an error of the messages protocol that keeps the exception's name. */
function errorBody(type: string, name: string, message: string): string {
  return JSON.stringify({ type: 'error', error: { type, code: name, message } });
}

/**
 * Of an exception in a stream: a credential that was good when it began is no fault of the Channel, and the next request has
 * another.
 */
export function streamErrorBody(name: string, message: string): string {
  const meaning = meaningOf(name, message) ?? api;
  return errorBody((meaning === unsigned ? api : meaning).type, name, message);
}

/** The name of the exception of an answer; empty where it has none, as from a proxy. */
export function exceptionOf({ headers, text }: UpstreamAnswer): string {
  const header = headers['x-amzn-errortype'];
  const json = tryJson(text);
  const named =
    (typeof header === 'string' ? header : header?.[0]) ?? (isObject(json) ? textOf(json['__type']) : undefined) ?? '';
  // `name:address`, or `namespace#name`.
  return named.split(':')[0]?.split('#').at(-1) ?? '';
}

/** The refusal as the messages codec reads it; one without a name stays as it came. */
export function readableRefusal(answer: UpstreamAnswer): Pick<Refused, 'answer' | 'repeats'> {
  const name = exceptionOf(answer);
  if (name === '') return { answer };
  const json = tryJson(answer.text);
  const message = (isObject(json) ? (textOf(json['message']) ?? textOf(json['Message'])) : undefined) ?? answer.text;
  const { status, type, repeats } = meaningOf(name, message) ?? { ...api, status: answer.status };
  const readable = { ...answer, status, text: errorBody(type, name, message) };
  return { answer: readable, ...(repeats === undefined ? {} : { repeats }) };
}
