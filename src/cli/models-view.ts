/** Models with their prices and Channels as the running configuration has them. */
import { defined } from '../codecs/defined.ts';
import type { PricedModel } from '../pages/price-list.ts';
import { listChannels } from './channel-service.ts';
import { pricedModel } from './price-lists.ts';
import type { VerbContext } from './verb.ts';

export interface ModelView {
  readonly id: string;
  readonly kind: string;
  /** As the price list shows it; absent: the model is not offered. */
  readonly price?: Omit<PricedModel, 'id' | 'kind'>;
  readonly channels: readonly { readonly id: string; readonly upstreamModel: string; readonly state: string }[];
}

export async function listModels(context: VerbContext): Promise<ModelView[]> {
  const { models, channels, disabledChannels } = context.config();
  const states = new Map((await listChannels(context)).map(({ id, state }) => [id, state]));
  return [...models.values()].map((model) => ({
    id: model.name,
    kind: model.kind,
    ...defined({ price: model.rates === undefined ? undefined : priceOf(pricedModel(model, model.rates)) }),
    channels: [...channels, ...disabledChannels].flatMap(({ id, models: own }) => {
      const upstreamModel = own.get(model.name);
      return upstreamModel === undefined ? [] : [{ id, upstreamModel, state: states.get(id) ?? 'in_service' }];
    }),
  }));
}

function priceOf({ id: _id, kind: _kind, ...price }: PricedModel): Omit<PricedModel, 'id' | 'kind'> {
  return price;
}
