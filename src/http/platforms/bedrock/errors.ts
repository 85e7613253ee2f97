/**
 * Bedrock's exceptions as errors of the messages protocol. What is about the Channel's own map of models, its region or its rights to a
 * model becomes a 404 whatever its status: it rests the Channel for that model, and is not the client's to mend.
 */
import { isObject, tryJson } from '../../../codecs/canonical/json.ts';
import type { UpstreamAnswer } from '../../../codecs/codec.ts';
import { textOf } from '../../../codecs/errors/upstream.ts';

interface Meaning {
  readonly status: number;
  readonly type: string;
}

const api: Meaning = { status: 500, type: 'api_error' };
const limited: Meaning = { status: 429, type: 'rate_limit_error' };
const refused: Meaning = { status: 403, type: 'permission_error' };
const unsigned: Meaning = { status: 401, type: 'authentication_error' };
const missing: Meaning = { status: 404, type: 'not_found_error' };

/** By the name of the exception, which a stream writes with a small letter. */
const MEANINGS: Readonly<Record<string, Meaning>> = {
  throttlingexception: limited,
  toomanyrequestsexception: limited,
  servicequotaexceededexception: limited,
  modelnotreadyexception: { status: 503, type: 'overloaded_error' },
  serviceunavailableexception: { status: 503, type: 'overloaded_error' },
  modeltimeoutexception: { status: 504, type: 'timeout_error' },
  modelerrorexception: api,
  modelstreamerrorexception: api,
  internalserverexception: api,
  internalfailure: api,
  validationexception: { status: 400, type: 'invalid_request_error' },
  accessdeniedexception: refused,
  resourcenotfoundexception: missing,
  expiredtokenexception: unsigned,
  unrecognizedclientexception: unsigned,
  invalidsignatureexception: unsigned,
  signaturedoesnotmatch: unsigned,
  missingauthenticationtokenexception: unsigned,
  missingauthenticationtoken: unsigned,
  incompletesignature: unsigned,
  incompletesignatureexception: unsigned,
  invalidclienttokenid: unsigned,
  requestexpired: unsigned,
};

/** Only the vendor's own sentences, which quote nothing of the client. */
const ABOUT_MODEL =
  /^(the provided model identifier is invalid|invocation of model id .{1,300} with on-demand throughput isn.t supported|you don.t have access to the model|access to (this|the) model|this model (is not available|version has reached)|operation not allowed|model access is denied|the model is not supported in (this|the) region)/i;

function meaningOf(name: string, message: string): Meaning | undefined {
  const known = MEANINGS[name.toLowerCase()];
  return (known?.status === 400 || known?.status === 403) && ABOUT_MODEL.test(message) ? missing : known;
}

/** The body of an error of the messages protocol that keeps the exception's name. */
export function errorBodyOf(name: string, message: string): string {
  const type = meaningOf(name, message)?.type ?? 'api_error';
  return JSON.stringify({ type: 'error', error: { type, code: name, message } });
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
export function readableRefusal(answer: UpstreamAnswer): UpstreamAnswer {
  const name = exceptionOf(answer);
  if (name === '') return answer;
  const json = tryJson(answer.text);
  const message = (isObject(json) ? (textOf(json['message']) ?? textOf(json['Message'])) : undefined) ?? answer.text;
  return { ...answer, status: meaningOf(name, message)?.status ?? answer.status, text: errorBodyOf(name, message) };
}
