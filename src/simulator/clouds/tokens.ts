/** Access tokens that a cloud has given, until they expire or are revoked. */
export interface Tokens {
  give(): { readonly access_token: string; readonly expires_in: number; readonly token_type: string };
  isGood(authorization: string | undefined): boolean;
}

export function createTokens(
  now: () => number,
  mint: (prefix: string) => string,
  {
    lifeS = 3600,
    revoked = () => false,
  }: { readonly lifeS?: number | undefined; readonly revoked?: (() => boolean) | undefined },
): Tokens {
  const ends = new Map<string, number>();
  return {
    give() {
      const token = mint('token_');
      ends.set(token, now() + lifeS * 1000);
      return { access_token: token, expires_in: lifeS, token_type: 'Bearer' };
    },
    isGood(authorization = '') {
      const end = ends.get(authorization.replace(/^Bearer /, ''));
      return end !== undefined && end > now() && !revoked();
    },
  };
}
