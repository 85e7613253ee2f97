/**
 * Claude on Amazon Bedrock, as `@anthropic-ai/bedrock-sdk` asks it: the model in the path, version and betas in the body,
 * requests signed with Signature Version 4 or sent with an API key.
 */
import type { UpstreamAnswer } from '../../../codecs/codec.ts';
import { isObject, type JsonObject } from '../../../codecs/canonical/json.ts';
import { textOf } from '../../../codecs/errors/upstream.ts';
import { editJson, type JsonEdit } from '../../../codecs/json/edit.ts';
import { sliceJson } from '../../../codecs/json/text.ts';
import { LONG_CHARS } from '../../../streams/text-pieces.ts';
import type { Outgoing } from '../../dispatch/outgoing.ts';
import { hostedVersion } from '../anthropic-version.ts';
import { pathSegment } from '../path-segment.ts';
import type { Asked, Means, Platform, Refused, Signed, Unsigned } from '../platform.ts';
import { Renewed } from '../renewed.ts';
import type { AwsKeys, BedrockSettings } from '../settings.ts';
import { awsKeys } from './credentials.ts';
import { exceptionOf, readableRefusal } from './errors.ts';
import { hashInTurns, Signer } from './sign.ts';

const VERSION = 'bedrock-2023-05-31';

export function bedrockPlatform(settings: BedrockSettings, means: Means): Platform {
  const models = (prefix: string) => ({
    origin: settings.controlOrigin,
    path: `${prefix}/foundation-models?byProvider=anthropic`,
    has: hasModel,
  });
  const { source } = settings;
  if (source === undefined) {
    const key = { authorization: `Bearer ${means.apiKey ?? ''}` };
    return { adapt, authorise: () => key, refused: (answer) => ({ ...readableRefusal(answer), again: false }), models };
  }
  const signing = new Signing(
    settings.region,
    means,
    new Renewed(means.clock, () => awsKeys(source, means)),
    source.from !== 'static',
  );
  return {
    adapt,
    authorise: (request) => signing.authorise(request),
    refused: (answer, request) => signing.refused(answer, request),
    models,
  };
}

/** A name of several regions is one of them with another beginning; what an account has made for itself is in no list. */
function hasModel({ modelSummaries: models }: JsonObject, name: string): boolean | undefined {
  const [, kind = 'foundation-model', own = name] = /^arn:[^/]*:([a-z-]+)\/(.+)$/.exec(name) ?? [];
  if (!Array.isArray(models) || (kind !== 'foundation-model' && kind !== 'inference-profile')) return undefined;
  const ids = models.filter(isObject).map(({ modelId }) => textOf(modelId) ?? '');
  return ids.some((id) => id === own || (id !== '' && own.endsWith(`.${id}`)));
}

/** What is not in the body any more is in the path. */
const MOVED: readonly JsonEdit[] = [
  { path: ['model'], value: undefined },
  { path: ['stream'], value: undefined },
];

function adapt(outgoing: Outgoing, { stream, upstreamModel }: Asked, prefix: string): Outgoing {
  const { 'anthropic-version': version, 'anthropic-user-profile-id': profile, ...headers } = outgoing.headers;
  const { body } = outgoing;
  const betas = headers['anthropic-beta'];
  const edits: JsonEdit[] = [...MOVED, { path: ['anthropic_version'], value: JSON.stringify(hostedVersion(version, VERSION)) }];
  if (betas !== undefined)
    edits.push({ path: ['anthropic_beta'], value: JSON.stringify(betas.split(',').map((beta) => beta.trim())) });
  if (profile !== undefined && typeof body === 'string' && !namesProfile(body))
    edits.push({ path: ['user_profile_id'], value: JSON.stringify(profile) });
  return {
    ...outgoing,
    path: `${prefix}/model/${pathSegment(upstreamModel)}/${stream ? 'invoke-with-response-stream' : 'invoke'}`,
    headers: { ...headers, accept: 'application/json' },
    ...(typeof body === 'string' ? { body: editJson(body, edits) } : {}),
  };
}

/** The body's own name of a profile stands. */
function namesProfile(body: string): boolean {
  return sliceJson(body, ['user_profile_id']) !== undefined;
}

/** A clock that is further off than this has its signatures refused. */
const SKEW_MS = 240_000;
/** The dates of HTTP have years of four digits. One beyond what a date can hold would fail every signature from then on. */
const DATES = { from: 0, to: Date.UTC(9999, 0) } as const;
const SKEWED = /^(invalidsignatureexception|signaturedoesnotmatch|requestexpired|requesttimetooskewed)$/i;
const UNSIGNED = /^(expiredtoken(exception)?|unrecognizedclientexception|invalidclienttokenid)$/i;

class Signing {
  readonly #signer: Signer;
  readonly #means: Means;
  readonly #keys: Renewed<AwsKeys>;
  readonly #renewable: boolean;
  /** How far the service's clock is ahead of this machine's. */
  #skewMs = 0;

  constructor(region: string, means: Means, keys: Renewed<AwsKeys>, renewable: boolean) {
    this.#signer = new Signer(region, 'bedrock');
    this.#means = means;
    this.#keys = keys;
    this.#renewable = renewable;
  }

  authorise(request: Unsigned): Readonly<Record<string, string>> | Promise<Readonly<Record<string, string>>> {
    const { body } = request;
    if (typeof body === 'string' && body.length > LONG_CHARS) return this.#authoriseLong(request, body);
    const keys = this.#keys.get();
    return keys instanceof Promise ? keys.then((arrived) => this.#sign(request, arrived)) : this.#sign(request, keys);
  }

  async #authoriseLong(request: Unsigned, body: string): Promise<Readonly<Record<string, string>>> {
    const bodyHash = await hashInTurns(body);
    return this.#sign(request, await this.#keys.get(), bodyHash);
  }

  refused(answer: UpstreamAnswer, request: Signed): Refused {
    const name = exceptionOf(answer);
    const again = SKEWED.test(name)
      ? this.#learnSkew(answer)
      : UNSIGNED.test(name) && this.#renewable && this.#keys.refused(request);
    return { ...readableRefusal(answer), again };
  }

  #sign({ method, origin, path, headers, body = '' }: Unsigned, keys: AwsKeys, bodyHash?: string): Record<string, string> {
    const { host } = new URL(origin);
    const request = { method, host, path, headers, body, ...(bodyHash === undefined ? {} : { bodyHash }) };
    return this.#signer.sign(request, keys, this.#means.clock.now() + this.#skewMs);
  }

  /** True where the service's own date says that this machine's clock was the fault. */
  #learnSkew({ headers }: UpstreamAnswer): boolean {
    const { date } = headers;
    const theirs = typeof date === 'string' ? Date.parse(date) : Number.NaN;
    if (!(theirs >= DATES.from && theirs < DATES.to)) return false;
    const skew = theirs - this.#means.clock.now();
    if (!(Math.abs(skew - this.#skewMs) > SKEW_MS)) return false;
    this.#skewMs = skew;
    return true;
  }
}
