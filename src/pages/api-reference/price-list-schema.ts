/** The schema of `GET /prices.json`. */
import { Type } from 'typebox';

const prices = (description: string) =>
  Type.Unsafe<Record<string, string>>({ type: 'object', additionalProperties: { type: 'string' }, description });
const longContext = Type.Object({
  above: Type.Integer({ description: 'A number of input tokens.' }),
  prices: prices('The prices for more input than that.'),
});

const modifiers = (description: string) =>
  Type.Unsafe<object>({
    type: 'object',
    description,
    additionalProperties: {
      anyOf: [
        Type.Object({ multiplier: Type.String({ description: 'A decimal factor.' }) }),
        Type.Object({ prices: prices('The same keys as `prices`.'), long_context: Type.Optional(longContext) }),
      ],
    },
  });

export const priceList = Type.Object({
  object: Type.Literal('price_list'),
  currency: Type.Literal('USD'),
  unit: Type.Literal('per_million_tokens', { description: 'The unit of every price that `units` does not list.' }),
  units: prices('The unit of each price: `per_million_tokens`, `per_image`, `per_video` or `per_thousand_calls`.'),
  updated_at: Type.String({ format: 'date-time' }),
  version: Type.String({ description: 'A digest: equal versions mean equal lists.' }),
  models: Type.Array(
    Type.Object({
      id: Type.String(),
      kind: Type.Enum(['text', 'embedding', 'image', 'video']),
      prices: prices('`input`, `cached_input`, `output` …, each as a decimal string.'),
      long_context: Type.Optional(longContext),
      service_tiers: Type.Optional(
        Type.Unsafe<object>({
          type: 'object',
          additionalProperties: { type: 'object', additionalProperties: { type: 'string' } },
        }),
      ),
      service_tier_long_context: Type.Optional(
        Type.Unsafe<object>({
          type: 'object',
          additionalProperties: longContext,
          description: 'Like `long_context`, for the tiers that have one.',
        }),
      ),
      speeds: Type.Optional(
        modifiers('By the speed that the upstream serves: `multiplier` of every token price, or `prices` of its own.'),
      ),
      geos: Type.Optional(modifiers('The same by the region in which the upstream runs.')),
    }),
  ),
});
