/** Translates error paths of the expanded request back to the client's own body, which has no history in it. */
import { GatewayError } from '../../codecs/canonical/error.ts';

/** `isText`: the client's own input was one string. */
export interface OwnInput {
  readonly itemsBefore: number;
  readonly isText: boolean;
}

/** The error with the client's own path; anything else unchanged. */
export function atClientPath(thrown: unknown, own: OwnInput | undefined): unknown {
  if (own === undefined || !(thrown instanceof GatewayError) || thrown.param === null) return thrown;
  const found = /^input\[(\d+)\](.*)$/s.exec(thrown.param);
  if (found === null) return thrown;
  const index = Number(found[1]) - own.itemsBefore;
  const rest = found[2] ?? '';
  const param = index < 0 ? 'previous_response_id' : own.isText ? 'input' : `input[${index}]${rest}`;
  return new GatewayError(thrown.code, thrown.message.replaceAll(thrown.param, param), { ...thrown.details, param });
}
