/**
 * The four video endpoints (spec, "POST /v1/videos" and what follows). Only the primary serves them; no task enters the request
 * log.
 */
import type { IncomingMessage } from 'node:http';
import { GatewayError, invalid } from '../../codecs/canonical/error.ts';
import { decodeVideoRequest, type VideoRequest, videoRequestDigest } from '../../codecs/videos/request.ts';
import type { Principal } from '../../store/keys.ts';
import type { NewVideo, NotCreated, VideoTask } from '../../store/videos.ts';
import { checkModel, limited } from '../exchange/admit.ts';
import { fromStore } from '../from-store.ts';
import { principalOf } from '../request/authenticate.ts';
import { Waiting } from '../exchange/reply.ts';
import type { Call, Handler } from '../gateway.ts';
import { headerValues } from '../request/header-values.ts';
import { receiveJson } from '../request/receive-json.ts';
import { queryOfTarget } from '../server/route-table.ts';
import { toGatewayError } from '../errors.ts';
import { logEnd } from '../videos/log-end.ts';
import { createdView, type TaskView, taskView } from '../videos/task-view.ts';
import { routesFor } from '../videos/video-channel.ts';

const MAX_BODY_BYTES = 1024 * 1024;
const MAX_IDEMPOTENCY_KEY_CHARS = 255;
const DEFAULT_LIMIT = 20;
const MAX_LIMIT = 100;

export const videos: Handler = async (call) => {
  const principal = await owner(call);
  if (call.method !== 'POST') return await list(call, principal);
  try {
    await create(call, principal);
  } catch (thrown) {
    logRefusal(call, principal, toGatewayError(thrown));
    throw thrown;
  }
};

export const video: Handler = async (call) => {
  const principal = await owner(call);
  const { store, clock } = call.gateway;
  const task = await fromStore(clock, store.videos.find(call.id ?? '', ownerIds(principal)));
  if (task === undefined) throw unknownVideo();
  answer(call, 200, taskView(task));
};

export const videoCancel: Handler = async (call) => {
  const principal = await owner(call);
  const { store, clock } = call.gateway;
  const cancelling = store.videos.cancel(call.id ?? '', ownerIds(principal), clock.now()).then((done) => {
    if (done.ok && done.value.state === 'cancelled') logEnd(call.gateway, done.value);
    return done;
  });
  const cancelled = await fromStore(clock, cancelling);
  if (cancelled.ok) return answer(call, 200, taskView(cancelled.value));
  const { refusal } = cancelled;
  if (refusal.reason !== 'illegal') throw unknownVideo();
  // Asked twice: the first one did it.
  if (refusal.task.state === 'cancelled') return answer(call, 200, taskView(refusal.task));
  throw new GatewayError('video_submission_started', 'The task has been submitted and can no longer be cancelled.');
};

async function owner(call: Call): Promise<Principal> {
  const principal = await principalOf(call);
  if (call.config.role !== 'primary')
    throw new GatewayError('video_primary_required', 'Video requests are served by the primary node.');
  return principal;
}

const ownerIds = ({ key, account }: Principal): { accountId: string; keyId: string } => ({
  accountId: account.id,
  keyId: key.id,
});

async function create(call: Call, principal: Principal): Promise<void> {
  checkContentType(call.request);
  const { text, json } = await receiveJson(call, principal, Math.min(MAX_BODY_BYTES, call.config.limits.jsonBytes));
  const idempotencyKey = idempotencyKeyOf(call.request);
  const wanted = decodeVideoRequest(json);
  const request = { principal, idempotencyKey, bodyHash: videoRequestDigest(json) };
  // Before the model is checked: an accepted request stays accepted, whatever the configuration is by now.
  const { store, clock } = call.gateway;
  const earlier = await fromStore(clock, store.videos.earlier(request));
  if (!earlier.ok) throw notCreated(earlier.refusal);
  const task = earlier.value ?? (await created(call, { ...request, wanted, text }));
  answer(call, 202, createdView(task), { location: `/v1/videos/${task.id}` });
}

interface Creation extends Pick<NewVideo, 'principal' | 'idempotencyKey' | 'bodyHash'> {
  readonly wanted: VideoRequest;
  readonly text: string;
}

async function created(call: Call, { wanted, text, ...request }: Creation): Promise<VideoTask> {
  const { gateway, config } = call;
  const { principal } = request;
  const model = checkModel(config, principal, wanted.model, 'video');
  const { routes, refusal } = routesFor(config, wanted, principal.account.class);
  if (routes.length === 0 && refusal === undefined) {
    throw new GatewayError('no_healthy_upstream', `No upstream of the model ${JSON.stringify(wanted.model)} makes videos.`);
  }
  if (refusal !== undefined && routes.length === 0) throw refusal;
  const priceNanos = model.rates?.pieces.get('video');
  if (priceNanos === undefined) throw new GatewayError('model_pricing_required', 'The model has no price for videos.');
  await limited(call, principal, model, { requests: 1, tokens: 0 });
  const making = gateway.store.videos.create({
    ...request,
    id: gateway.mint('video_'),
    model: wanted.model,
    requestJson: text,
    priceNanos,
    nowMs: gateway.clock.now(),
  });
  // A store that answers late has made the task all the same: it is told, and the client that asks again gets it.
  const made = await fromStore(
    gateway.clock,
    making.then((done) => {
      if (done.ok) tellCreated(call, done.value);
      return done;
    }),
  );
  if (!made.ok) throw notCreated(made.refusal);
  call.notes.limit?.used(0);
  return made.value.task;
}

function tellCreated({ gateway, requestId }: Call, made: { readonly task: VideoTask; readonly created: boolean }): void {
  const { task, created: isNew } = made;
  const { id, keyId, accountId, model, frozenNanos } = task;
  const facts = { request_id: requestId, task: id, key_id: keyId, account_id: accountId, model };
  if (isNew) gateway.log.info({ ...facts, hold_nanos: frozenNanos.toString() }, 'video created');
  gateway.videoCreated();
}

/** Video requests have no row in the request log, so that a refused creation is a line of the log alone. */
function logRefusal({ gateway, requestId, route }: Call, { key, account }: Principal, error: GatewayError): void {
  gateway.log.info(
    { request_id: requestId, key_id: key.id, account_id: account.id, route, status: error.status, error_code: error.code },
    'refused',
  );
}

/** SDKs send this endpoint as a form; here it is JSON. Any other type is taken for what the body is. */
function checkContentType(request: IncomingMessage): void {
  if (/^\s*multipart\//i.test(request.headers['content-type'] ?? '')) {
    throw new GatewayError('unsupported_media_type', 'Send the request as JSON (content-type: application/json).');
  }
}

function idempotencyKeyOf(request: IncomingMessage): string {
  const values = headerValues(request, 'idempotency-key');
  const [value] = values;
  if (value === undefined || value.trim() === '') {
    throw new GatewayError('idempotency_key_required', 'The Idempotency-Key header is required: one key for each generation.', {
      param: 'Idempotency-Key',
    });
  }
  if (values.length > 1 || value.length > MAX_IDEMPOTENCY_KEY_CHARS || !/^[\x20-\x7e]+$/.test(value)) {
    throw invalid(
      'Idempotency-Key',
      `Idempotency-Key must be one value of at most ${MAX_IDEMPOTENCY_KEY_CHARS} printable ASCII characters.`,
    );
  }
  return value;
}

function notCreated(refusal: NotCreated): GatewayError {
  switch (refusal.reason) {
    case 'invalid':
      return invalid(refusal.field, refusal.message);
    case 'idempotency_key_reused':
      return new GatewayError('idempotency_key_reused', 'This Idempotency-Key was used with another request.', {
        param: 'Idempotency-Key',
      });
    case 'insufficient_balance':
      return new GatewayError('insufficient_balance', 'The balance is too low.');
    case 'spend_limit_reached':
      return new GatewayError('api_key_spend_limit_reached', `The ${refusal.window} spend limit of this API key is used up.`);
    case 'key_not_active':
      return new GatewayError('unauthorized', 'The API key is missing or not valid.');
  }
}

async function list(call: Call, principal: Principal): Promise<void> {
  const query = queryOfTarget(call.request.url ?? '');
  const limit = limitOf(query.get('limit'));
  const after = query.get('after');
  const { store, clock } = call.gateway;
  const asked = { limit, ...(after === null ? {} : { after }) };
  const page = await fromStore(clock, store.videos.list(ownerIds(principal), asked));
  if (!page.ok) throw invalid('after', 'There is no such cursor.');
  const { tasks, hasMore, nextCursor } = page.value;
  answer(call, 200, { object: 'list', data: tasks.map(taskView), has_more: hasMore, next_cursor: nextCursor ?? null });
}

function limitOf(value: string | null): number {
  if (value === null) return DEFAULT_LIMIT;
  const limit = Number(value);
  if (!/^\d{1,4}$/.test(value) || limit < 1 || limit > MAX_LIMIT) {
    throw invalid('limit', `limit must be an integer from 1 to ${MAX_LIMIT}.`);
  }
  return limit;
}

interface TaskList {
  readonly object: 'list';
  readonly data: readonly TaskView[];
  readonly has_more: boolean;
  readonly next_cursor: string | null;
}

function answer(call: Call, status: number, body: TaskView | TaskList, headers: Readonly<Record<string, string>> = {}): void {
  new Waiting(call).answer({ status, body: JSON.stringify(body), headers: { 'cache-control': 'no-store', ...headers } });
}

function unknownVideo(): GatewayError {
  return new GatewayError('video_not_found', 'There is no such video task.');
}
