/** What the client of the warm-up asks: a short conversation in each protocol that clients speak, streamed and whole. */
import type { ChannelType } from '../../codecs/canonical/dialect.ts';

export interface WarmUpRequest {
  readonly path: string;
  readonly body: string;
}

/** The model that leads to the Channel of this type. */
export const modelOf = (type: ChannelType): string => `warm-${type}`;

const SYSTEM = 'You know a lot about water.';
const QUESTION = 'Tell me how water finds its way.';
const SCHEMA = { type: 'object', properties: { depth: { type: 'number' } }, required: ['depth'] };

/** Every client of every type, each twice. */
export function requestsTo(types: readonly ChannelType[]): WarmUpRequest[] {
  return [true, false].flatMap((stream) => types.flatMap((type) => requests(modelOf(type), stream)));
}

function requests(model: string, stream: boolean): WarmUpRequest[] {
  const user = { role: 'user', content: QUESTION };
  const name = 'dive';
  const description = 'Looks at the bottom.';
  const of = (path: string, members: object): WarmUpRequest => ({ path, body: JSON.stringify({ model, stream, ...members }) });
  return [
    of('/v1/chat/completions', {
      messages: [{ role: 'system', content: SYSTEM }, user],
      tools: [{ type: 'function', function: { name, description, parameters: SCHEMA } }],
      ...(stream && { stream_options: { include_usage: true } }),
    }),
    of('/v1/responses', {
      store: false,
      instructions: SYSTEM,
      input: [user],
      tools: [{ type: 'function', name, description, parameters: SCHEMA, strict: false }],
    }),
    of('/v1/messages', {
      max_tokens: 1024,
      system: SYSTEM,
      messages: [user],
      tools: [{ name, description, input_schema: SCHEMA }],
    }),
  ];
}
