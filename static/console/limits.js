/** Limits of accounts and keys: as fields of a form, as members of a request, and in words. */
import { count, plainMoney } from './dom.js';

const RATES = [
  ['requestsPerMinute', 'Requests a minute'],
  ['tokensPerMinute', 'Tokens a minute'],
  ['maxConcurrency', 'Requests at the same time'],
];
const SPEND = [
  ['total', 'Most it may ever spend, $'],
  ['hourly', 'Most in an hour, $'],
  ['daily', 'Most in a day, $'],
];

const fieldsOf = (list, values, type) => list.map(([name, label]) => ({ name, label, type, value: values?.[name] }));
export const rateFields = (rateLimits) => fieldsOf(RATES, rateLimits, 'number');
export const spendFields = (limits) => fieldsOf(SPEND, limits, 'text');

/** The named members alone; one that was emptied is null where there was one (`before`), else left out. */
function members(list, values, before, read) {
  const found = list.flatMap(([name]) => {
    const text = values[name];
    if (text !== undefined) return [[name, read(text)]];
    return before?.[name] === undefined ? [] : [[name, null]];
  });
  return found.length === 0 ? undefined : Object.fromEntries(found);
}
export const rateMembers = (values, before) => members(RATES, values, before, Number);
export const spendMembers = (values, before) => members(SPEND, values, before, String);

export function rateText(rateLimits = {}) {
  const { requestsPerMinute, tokensPerMinute, maxConcurrency } = rateLimits;
  return [
    requestsPerMinute === undefined ? [] : `${count(requestsPerMinute)} requests/min`,
    tokensPerMinute === undefined ? [] : `${count(tokensPerMinute)} tokens/min`,
    maxConcurrency === undefined ? [] : `${count(maxConcurrency)} at once`,
  ]
    .flat()
    .join(', ');
}

export function spendText({ total, hourly, daily } = {}) {
  return [
    total === undefined ? [] : `${plainMoney(total)} in all`,
    hourly === undefined ? [] : `${plainMoney(hourly)}/hour`,
    daily === undefined ? [] : `${plainMoney(daily)}/day`,
  ]
    .flat()
    .join(', ');
}
