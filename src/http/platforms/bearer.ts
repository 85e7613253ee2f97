/** An OAuth access token as the header of requests. */
import type { Clock } from '../../streams/clock.ts';
import { type Fresh, Renewed } from './renewed.ts';

type Headers = Readonly<Record<string, string>>;

export interface Bearer {
  headers(): Headers | Promise<Headers>;
  /** The upstream refused a request that was sent at `sentAt`, by the monotonic clock: true where it may go well with another token. */
  refused(sentAt: number): boolean;
}

/** The header is made once for each token. */
export function bearerOf(clock: Clock, obtain: () => Promise<Fresh<string>>): Bearer {
  const renewed = new Renewed<Headers>(clock, async () => {
    const { value, expiresAtMs } = await obtain();
    return { value: { authorization: `Bearer ${value}` }, expiresAtMs };
  });
  return { headers: () => renewed.get(), refused: (sentAt) => renewed.refused(sentAt) };
}
