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
  { name: 'First output', number: true, of: ({ firstOutputMs }) => duration(firstOutputMs) },
  { name: 'Duration', number: true, of: ({ durationMs }) => duration(durationMs) },
  { name: 'Input', number: true, of: inputText },
  { name: 'Output', number: true, of: ({ outputTokens }) => (outputTokens === undefined ? '–' : count(outputTokens)) },
  { name: 'Endpoint', of: ({ endpoint, stream }) => [endpoint, stream && h('small', {}, ' stream')] },
];

const statusText = (status, httpStatus, code) =>
  [httpStatus, code ?? (status === 'success' ? undefined : status)].filter((text) => text !== undefined).join(' ') || status;

function inputText({ inputTokens, cachedInputTokens = 0, cacheWriteTokens = 0 }) {
  return inputTokens === undefined ? '–' : count(inputTokens + cachedInputTokens + cacheWriteTokens);
}

export const mark = ({ status }) => (status === 'success' ? undefined : 'failed');
