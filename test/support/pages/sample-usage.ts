/** What the account page asks for, as the gateway answers it: balance and usage of a key, its models named with markup. */
import type { IncomingMessage, ServerResponse } from 'node:http';

export const SAMPLE_KEY = 'sk-mizu-sample';
const DAY_MS = 86_400_000;

const counts = (n: number) => ({
  requests: 40 + n,
  errors: n % 3,
  input_tokens: 81_234 * n,
  cached_input_tokens: 12_000 * n,
  cache_write_tokens: 0,
  output_tokens: 9_100 * n,
  reasoning_tokens: 500,
  images: 0,
  videos: 0,
  charged: `${n}.${String(n * 7).padStart(3, '0')}000001`,
});

const MODELS = ['claude-sonnet-5', '<img src=x onerror=alert(1)>', 'a-model-with-a-name-that-is-much-longer-than-any-column', ''];

/** Answers for a test of the page; false for what is not the API's. `problem` is the status of every answer, if it is not 200. */
export function answerUsage(request: IncomingMessage, response: ServerResponse, problem?: number): boolean {
  const { pathname, searchParams } = new URL(request.url ?? '/', 'http://localhost');
  if (pathname !== '/v1/usage' && pathname !== '/api/codex/usage') return false;
  const status = request.headers.authorization === `Bearer ${SAMPLE_KEY}` ? (problem ?? 200) : 401;
  const balance = { plan_type: 'unknown', rate_limit: null, credits: { has_credits: true, unlimited: false, balance: '873.25' } };
  const body = status === 200 ? (pathname === '/v1/usage' ? { data: groups(searchParams) } : balance) : { error: {} };
  response.writeHead(status, { 'content-type': 'application/json', 'x-request-id': 'req_sample' }).end(JSON.stringify(body));
  return true;
}

function groups(query: URLSearchParams): object[] {
  const [from, to] = [Date.parse(query.get('from') ?? ''), Date.parse(query.get('to') ?? '')];
  if (query.get('group_by') === 'model') return MODELS.map((model, n) => ({ model, ...counts(MODELS.length - n) }));
  if (query.get('group_by') === 'hour')
    return [3, 4, 9, 11].map((hour, n) => ({
      hour: new Date(from + hour * 3_600_000).toISOString().replace('.000', ''),
      ...counts(n + 1),
    }));
  const days = Math.round((to - from) / DAY_MS) + 1;
  return Array.from({ length: days }, (_, n) => ({
    day: new Date(from + n * DAY_MS).toISOString().slice(0, 10),
    ...counts((n % 5) + 1),
  }));
}
