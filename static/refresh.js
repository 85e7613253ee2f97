/**
 * Asks for the prices again every 30 seconds, only while the page is visible, online and not paused, and never twice at once.
 * It knows when to ask and what a good answer is; what is shown is its callers' business.
 */
const INTERVAL_MS = 30_000;
const TIMEOUT_MS = 10_000;

/**
 * @param {{ url: string, updatedAt: string, version: string, onList: (list: object, changed: boolean) => void, onFailure: (reason: string) => void, onIdle: () => void }} options
 *   `updatedAt`, `version`: of the list that is on the screen. `onIdle`: the page went offline, or came back and has no answer yet.
 */
export function startRefresh({ url, updatedAt, version, onList, onFailure, onIdle }) {
  let paused = false;
  let timer = 0;
  /** @type {AbortController | undefined} */
  let flight;
  let shown = { updatedAt, version };

  const active = () => !paused && document.visibilityState === 'visible' && navigator.onLine;

  function stop() {
    clearTimeout(timer);
    timer = 0;
    flight?.abort();
    flight = undefined;
  }

  function schedule() {
    clearTimeout(timer);
    timer = active() ? setTimeout(ask, INTERVAL_MS) : 0;
  }

  async function ask() {
    if (!active() || flight) return;
    clearTimeout(timer);
    const mine = new AbortController();
    flight = mine;
    const late = setTimeout(() => mine.abort('late'), TIMEOUT_MS);
    try {
      const answer = await fetch(url, { cache: 'no-cache', credentials: 'omit', signal: mine.signal });
      if (!answer.ok) throw new Refused(`the gateway answered ${answer.status}`);
      const list = readList(await answer.text());
      if (flight !== mine) return;
      const version = list.version ?? JSON.stringify(list.models);
      // Behind a balancer an older node may answer; only a list that would change what is shown is a step back.
      if (Date.parse(list.updated_at) < Date.parse(shown.updatedAt) && version !== shown.version) {
        throw new Refused('the gateway answered with an older list');
      }
      const changed = version !== shown.version;
      shown = { updatedAt: list.updated_at, version };
      onList(list, changed);
    } catch (error) {
      if (flight === mine) onFailure(reasonOf(error, mine.signal));
    } finally {
      clearTimeout(late);
      if (flight === mine) {
        flight = undefined;
        schedule();
      }
    }
  }

  function wake() {
    if (active()) ask();
    else stop();
  }
  document.addEventListener('visibilitychange', wake);
  addEventListener('pageshow', (event) => event.persisted && wake());
  for (const name of ['online', 'offline']) {
    addEventListener(name, () => {
      onIdle();
      wake();
    });
  }
  schedule();

  return {
    /** Asks at once, where asking is allowed. */
    now: ask,
    /** @param {boolean} value */
    setPaused(value) {
      paused = value;
      wake();
    },
  };
}

class Refused extends Error {}

function reasonOf(error, signal) {
  if (signal.aborted) return `no answer within ${TIMEOUT_MS / 1000} seconds`;
  return error instanceof Refused ? error.message : 'the gateway could not be reached';
}

/** The list, or a refusal: nothing that is not wholly a price list may replace what is shown. */
function readList(text) {
  let list;
  try {
    list = JSON.parse(text);
  } catch {
    throw new Refused('the answer was no price list');
  }
  const good =
    list?.object === 'price_list' &&
    list.currency === 'USD' &&
    Number.isFinite(Date.parse(list.updated_at)) &&
    Array.isArray(list.models) &&
    list.models.every(isModel);
  if (!good) throw new Refused('the answer was no price list');
  return list;
}

function isModel(model) {
  return (
    typeof model?.id === 'string' &&
    typeof model.kind === 'string' &&
    isRecord(model.prices) &&
    (model.long_context === undefined || isLong(model.long_context)) &&
    (model.service_tiers === undefined ||
      (isObject(model.service_tiers) && Object.values(model.service_tiers).every((tier) => isRecord(tier)))) &&
    (model.service_tier_long_context === undefined ||
      (isObject(model.service_tier_long_context) && Object.values(model.service_tier_long_context).every(isLong))) &&
    [model.speeds, model.geos].every((named) => named === undefined || isModifiers(named))
  );
}

function isModifiers(named) {
  const isModifier = (one) =>
    isObject(one) &&
    (typeof one.multiplier === 'string' ||
      (isRecord(one.prices) && (one.long_context === undefined || isLong(one.long_context))));
  return isObject(named) && Object.values(named).every(isModifier);
}

const isLong = (long) => Number.isFinite(long?.above) && isRecord(long.prices);
const isObject = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);
const isRecord = (value) => isObject(value) && Object.values(value).every((price) => typeof price === 'string');
