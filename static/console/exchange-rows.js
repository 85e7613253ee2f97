/** The table of exchanges, as the log and the live view show it. */
import { count, duration, h, link, money, one, tag, time } from './dom.js';
import { accountLink, keyLink } from './names.js';

export const STATUS_KINDS = { success: 'good', error: 'bad', interrupted: 'bad' };

export const COLUMNS = [
  { name: 'Time, UTC', of: ({ startedAtMs, exchangeId }) => link(one('exchange', exchangeId), time(startedAtMs, true)) },
  {
    name: 'Status',
    of: ({ status, httpStatus, errorCode }) => tag(statusText(status, httpStatus, errorCode), STATUS_KINDS[status]),
  },
  { name: 'Account', of: ({ accountId }) => accountLink(accountId) },
  { name: 'Key', of: ({ keyId }) => keyLink(keyId) },
  { name: 'Model', of: ({ model }) => h('code', { class: 'code' }, model || '–') },
  { name: 'Charged', number: true, of: ({ charge }) => money(charge) },
  {
    name: 'Channel',
    of: ({ channelId, attempts }) => [channelId ?? '–', attempts > 1 && h('small', {}, ` ${attempts} attempts`)],
  },
  {
    name: 'First output, whole',
    number: true,
    of: ({ firstOutputMs, durationMs }) => `${duration(firstOutputMs)}, ${duration(durationMs)}`,
  },
  { name: 'Tokens in, out', number: true, of: tokensText },
];

const statusText = (status, httpStatus, code) =>
  [httpStatus, code ?? (status === 'success' ? undefined : status)].filter((text) => text !== undefined).join(' ') || status;

function tokensText({ inputTokens, cachedInputTokens = 0, cacheWriteTokens = 0, outputTokens }) {
  return inputTokens === undefined ? '–' : `${count(inputTokens + cachedInputTokens + cacheWriteTokens)}, ${count(outputTokens)}`;
}

export const mark = ({ status }) => (status === 'success' ? undefined : 'failed');
