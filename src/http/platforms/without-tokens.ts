/** The texts of refusals without what they may quote of the credential: some clouds print the headers that they were sent. */
import type { UpstreamAnswer } from '../../codecs/codec.ts';

const TOKENS = /\beyJ[\w-]{8,}\.[\w-]+\.[\w-]*|\bya29\.[\w.-]+|(?<=x-amz-security-token:)\S+|(?<=\bBearer )\S{16,}/gi;

export function withoutTokens(answer: UpstreamAnswer): UpstreamAnswer {
  return { ...answer, text: answer.text.replace(TOKENS, '[redacted]') };
}
