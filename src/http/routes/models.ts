/** `GET /v1/models`: what the calling key may use. Health is ignored, so that a list does not flicker; unpriced models are not offered. */
import { authenticate } from '../request/authenticate.ts';
import { channelsOfModel } from '../dispatch/candidates.ts';
import { Waiting } from '../exchange/reply.ts';
import type { Handler } from '../gateway.ts';

export const models: Handler = async (call) => {
  const { gateway, config } = call;
  const { key, account } = await authenticate(call.request, call.ip, gateway.store.keys, gateway.clock.now());
  const offered = [...config.models.values()].filter(
    ({ name, rates }) =>
      rates !== undefined &&
      (key.models === undefined || key.models.includes(name)) &&
      channelsOfModel(config, name, account.class).length > 0,
  );
  const created = Math.floor(config.loadedAtMs / 1000);
  const data = offered
    .map(({ name }) => ({ id: name, object: 'model', created, owned_by: 'mizu' }))
    .sort((a, b) => (a.id < b.id ? -1 : 1));
  new Waiting(call).answer({ status: 200, body: JSON.stringify({ object: 'list', data }) });
};
