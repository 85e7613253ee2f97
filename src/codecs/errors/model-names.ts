/** Upstreams name the model in their errors as they know it; clients know it by the name that they asked for. */
import { GatewayError } from '../canonical/error.ts';

/** What a name must not be a part of: another name, such as that of a larger model. */
const BEFORE = String.raw`(?<![\w-]|\w\.)`;
const BEHIND = String.raw`(?![\w-]|\.\w)`;

/** The error with `wire`, the upstream's name of the model, replaced by the logical one in its message. */
export function namingModel(error: GatewayError, wire: string, logical: string): GatewayError {
  if (wire === '' || wire === logical || !error.message.includes(wire)) return error;
  const escaped = wire.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&');
  const name = new RegExp(`${BEFORE}${escaped}${BEHIND}`, 'g');
  const message = error.message.replace(name, () => logical);
  return message === error.message ? error : new GatewayError(error.code, message, error.details);
}
