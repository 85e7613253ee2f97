/** What a key has used. The key lives in one variable of this module: it is written nowhere, and sent to this gateway only. */
import { nanosOf, usd } from './money.js';

const part = (id) => document.getElementById(id);
const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;

let key = '';
/** Answers of an older question are not shown. */
let asked = 0;

part('sign-in').addEventListener('submit', (event) => {
  event.preventDefault();
  key = part('key').value.trim();
  if (key !== '') void show(true);
});
part('forget').addEventListener('click', () => {
  asked += 1;
  key = '';
  part('key').value = '';
  part('usage').hidden = true;
  part('sign-in').hidden = false;
  say('');
  part('key').focus();
});
part('again').addEventListener('click', () => void show(false));
for (const choice of document.querySelectorAll('[name="period"]')) choice.addEventListener('change', () => void show(false));

// What scrolls sideways must be reached by the keyboard.
for (const wide of document.querySelectorAll('.wide')) wide.tabIndex = 0;

/** @param {boolean} isNew whether the key was just given */
async function show(isNew) {
  asked += 1;
  const question = asked;
  say('');
  part('state').textContent = 'Loading…';
  const days = Number(document.querySelector('[name="period"]:checked').value);
  const now = Date.now();
  const range = `from=${dayName(now - (days - 1) * DAY_MS)}&to=${dayName(now)}`;
  const unit = days === 1 ? 'hour' : 'day';
  try {
    const [balance, byTime, byModel] = await Promise.all([
      ask('api/codex/usage'),
      ask(`v1/usage?group_by=${unit}&${range}`),
      ask(`v1/usage?group_by=model&${range}`),
    ]);
    if (question !== asked) return;
    part('sign-in').hidden = true;
    part('usage').hidden = false;
    if (isNew) part('usage').focus();
    part('balance').textContent = balanceText(balance);
    fill({ days, unit, now, byTime: byTime.data, byModel: byModel.data });
    part('state').textContent = `As of ${new Date(now).toISOString().slice(11, 19)} UTC`;
  } catch (error) {
    if (question !== asked) return;
    part('state').textContent = '';
    say(error instanceof Refused ? error.message : 'The gateway cannot be reached. Try again in a moment.');
  }
}

class Refused extends Error {}

async function ask(path) {
  const answer = await fetch(path, { headers: { authorization: `Bearer ${key}` }, cache: 'no-store', credentials: 'omit' });
  if (answer.ok) return await answer.json();
  const id = answer.headers.get('x-request-id');
  const about = id === null ? '' : ` (request ${id})`;
  if (answer.status === 401) throw new Refused('This gateway does not know that key, or it is disabled or has expired.');
  if (answer.status === 403) throw new Refused(`The key may not be used from this address${about}.`);
  if (answer.status === 429) throw new Refused('Too many requests with this key: try again in a moment.');
  throw new Refused(`The gateway cannot answer now: HTTP ${answer.status}${about}.`);
}

function say(words) {
  part('problem').textContent = words;
}

function balanceText({ credits: { balance, unlimited } }) {
  if (unlimited) return 'without limit';
  return `$${usd(nanosOf(balance))}`.replace('$−', '−$');
}

function fill({ days, unit, now, byTime, byModel }) {
  const sum = (name) => byTime.reduce((all, row) => all + (row[name] ?? 0), 0);
  const charged = byTime.reduce((all, row) => all + nanosOf(row.charged), 0n);
  part('sums').replaceChildren(
    figure('Charged', `$${usd(charged)}`),
    figure('Requests', count(sum('requests'))),
    figure('Failed', count(sum('errors'))),
    figure('Input tokens', count(sum('input_tokens') + sum('cached_input_tokens') + sum('cache_write_tokens'))),
    figure('Output tokens', count(sum('output_tokens'))),
  );
  plot(byTime, unit, unit === 'hour' ? hoursOf(now) : daysOf(now, days));
  part('unit').textContent = unit;
  part('nothing').hidden = byTime.length > 0;
  for (const title of ['models', 'times']) {
    part(`${title}-title`).hidden = byTime.length === 0;
    part(title).closest('.wide').hidden = byTime.length === 0;
  }
  const cost = (a, b) => (nanosOf(a.charged) < nanosOf(b.charged) ? 1 : -1);
  part('models').replaceChildren(...[...byModel].sort(cost).map((row) => line(row.model === '' ? '(refused)' : row.model, row)));
  part('times').replaceChildren(...[...byTime].reverse().map((row) => line(timeText(row, unit), row)));
}

function plot(rows, unit, times) {
  const charged = new Map(rows.map((row) => [row[unit], nanosOf(row.charged)]));
  const most = [...charged.values()].reduce((top, nanos) => (nanos > top ? nanos : top), 0n);
  const columns = times.map((time) => {
    const nanos = charged.get(time) ?? 0n;
    const column = document.createElement('i');
    column.style.setProperty('--share', most === 0n ? '0' : String(Number((nanos * 10_000n) / most) / 10_000));
    column.classList.toggle('some', nanos > 0n);
    column.title = `${timeText({ [unit]: time }, unit)}: $${usd(nanos)}`;
    return column;
  });
  part('plot').replaceChildren(...columns);
  part('plot').setAttribute('aria-label', `Charged by ${unit}; the most was $${usd(most)}. The table below has the figures.`);
  part('plot-title').textContent = `Charged by ${unit}, at most $${usd(most)}`;
  part('first').textContent = timeText({ [unit]: times[0] }, unit);
  part('last').textContent = timeText({ [unit]: times.at(-1) }, unit);
}

function figure(name, value) {
  const [box, term, text] = ['div', 'dt', 'dd'].map((tag) => document.createElement(tag));
  term.textContent = name;
  text.textContent = value;
  box.append(term, text);
  return box;
}

function line(name, row) {
  const tr = document.createElement('tr');
  const head = document.createElement('th');
  head.scope = 'row';
  head.textContent = name;
  head.title = name;
  const cells = [
    count(row.requests),
    count(row.errors),
    count(row.input_tokens),
    count(row.cached_input_tokens + row.cache_write_tokens),
    count(row.output_tokens),
    usd(nanosOf(row.charged)),
  ].map((text) => {
    const cell = document.createElement('td');
    cell.textContent = text;
    return cell;
  });
  tr.append(head, ...cells);
  return tr;
}

const dayName = (ms) => new Date(ms).toISOString().slice(0, 10);
const daysOf = (now, days) => Array.from({ length: days }, (_, n) => dayName(now - (days - 1 - n) * DAY_MS));
const hoursOf = (now) => {
  const midnight = Math.floor(now / DAY_MS) * DAY_MS;
  return Array.from({ length: 24 }, (_, n) => new Date(midnight + n * HOUR_MS).toISOString().replace('.000', ''));
};
const timeText = (row, unit) => (unit === 'hour' ? row.hour.slice(11, 16) : row.day);
const count = (value) => value.toLocaleString('en-US');
