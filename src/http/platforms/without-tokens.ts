/** The texts of refusals without what they may quote of the credential: some clouds print the headers that they were sent. */

const TOKENS = /\beyJ[\w-]{8,}\.[\w-]+\.[\w-]*|\bya29\.[\w.-]+|(?<=x-amz-security-token:)\S+|(?<=\bBearer )\S{16,}/gi;

export function withoutTokens(text: string): string {
  return text.replace(TOKENS, '[redacted]');
}
