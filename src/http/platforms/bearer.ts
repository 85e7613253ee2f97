/** An OAuth access token as the header of requests. */
import type { Clock } from '../../streams/clock.ts';
import type { Signed } from './platform.ts';
import { type Fresh, Renewed } from './renewed.ts';

type Headers = Readonly<Record<string, string>>;

export interface Bearer {
  headers(): Headers | Promise<Headers>;
  /** The upstream refused a request: true where it may go well with another token. */
  refused(request: Signed): boolean;
}

/** The header is made once for each token. */
export function bearerOf(clock: Clock, obtain: () => Promise<Fresh<string>>): Bearer {
  const renewed = new Renewed<Headers>(clock, async () => {
    const { value, expiresAtMs } = await obtain();
    return { value: { authorization: `Bearer ${value}` }, expiresAtMs };
  });
  return { headers: () => renewed.get(), refused: (request) => renewed.refused(request) };
}
