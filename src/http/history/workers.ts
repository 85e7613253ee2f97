/**
 * The history of several worker processes: a response id names the worker that keeps it, and every turn of a conversation is kept where
 * its first one is, so that a chain stays in one place and costs what was said once. Another worker asks that one through the primary.
 * What cannot be had in time is unknown, which clients answer by sending everything again.
 */
import { isObject, type JsonObject, type JsonValue } from '../../codecs/canonical/json.ts';
import type { Mint } from '../../codecs/codec.ts';
import type { Clock } from '../../streams/clock.ts';
import { type Memory, type NewTurn, RESPONSE_ID_PREFIX } from './memory.ts';
import { allItems, type ItemTexts, itemTexts, joinItems, NO_ITEMS, type PastTurn, pastTurn, storedItemsOf } from './past-turn.ts';
import type { ResponseHistory } from './response-history.ts';

/** How a worker reaches the others: the primary passes on by `to`, and writes `from`. */
export interface Post {
  send(message: JsonObject): void;
  onMessage(listener: (message: unknown) => void): void;
}

export interface WorkersMemoryOptions {
  readonly history: ResponseHistory;
  readonly mint: Mint;
  /** Of this worker: 0 to 65535, one of its own. */
  readonly worker: number;
  readonly post: Post;
  readonly clock: Clock;
}

const ANSWER_MS = 2_000;
const WORKER_DIGITS = 4;
/** Tells these messages from others on the same channel. */
const HISTORY_TOPIC = 'mizu.history';

export function workersMemory(options: WorkersMemoryOptions): Memory {
  const { history, mint, worker, post, clock } = options;
  const asked = new Map<number, (answer: JsonObject | undefined) => void>();
  let count = 0;

  const ask = (to: number, question: JsonObject): Promise<JsonObject | undefined> =>
    new Promise((resolve) => {
      const ask = ++count;
      const timer = clock.setTimeout(() => settle(undefined), ANSWER_MS);
      const settle = (answer: JsonObject | undefined): void => {
        timer.cancel();
        asked.delete(ask);
        resolve(answer);
      };
      asked.set(ask, settle);
      post.send({ topic: HISTORY_TOPIC, to, ask, question });
    });

  post.onMessage((message) => {
    if (!isObject(message) || message['topic'] !== HISTORY_TOPIC) return;
    const { ask: number, from, question, answer } = message;
    if (typeof number !== 'number') return;
    if (isObject(question) && typeof from === 'number') {
      post.send({ topic: HISTORY_TOPIC, to: from, ask: number, answer: answerTo(history, question) });
    } else {
      asked.get(number)?.(isObject(answer) ? answer : undefined);
    }
  });

  const save = async (to: number, { id, owner, turn, previousId }: NewTurn): Promise<void> => {
    const { output, storedItems, itemIds } = turn;
    const question = { do: 'save', id, owner, output: wire(output), stored: [...storedItems].map(pair), itemIds };
    const previous = previousId === undefined ? {} : { previousId };
    const answer = await ask(to, { ...question, ...previous, input: wire(turn.input) });
    // The turn before was held by a connection only: then all of it goes.
    if (answer?.['isMissing'] === true) {
      const before = turn.parent === undefined ? NO_ITEMS : allItems(turn.parent);
      await ask(to, { ...question, input: wire(joinItems([before, turn.input])), stored: [...storedItemsOf(turn)].map(pair) });
    }
  };

  return {
    responseId(previousId) {
      const home = (previousId === undefined ? undefined : homeOf(previousId)) ?? worker;
      const digits = home.toString(16).padStart(WORKER_DIGITS, '0');
      return RESPONSE_ID_PREFIX + digits + mint('').slice(WORKER_DIGITS);
    },
    find(id, owner) {
      const home = homeOf(id);
      if (home === undefined || home === worker) return history.find(id, owner);
      return ask(home, { do: 'find', id, owner }).then((answer) => (answer?.['found'] === true ? readTurn(answer) : undefined));
    },
    turnOf: (itemId, owner) => history.turnOf(itemId, owner),
    save(turn) {
      const home = homeOf(turn.id);
      if (home !== undefined && home !== worker) return save(home, turn);
      history.save(turn.id, turn.owner, turn.turn);
      return undefined;
    },
    close() {
      for (const settle of [...asked.values()]) settle(undefined);
      history.close();
    },
  };
}

/** The primary's part: where a message goes, and what its sender is told when nobody is there. */
export function passOn(message: unknown, from: number, sendTo: (worker: number, message: JsonObject) => boolean): void {
  if (!isObject(message) || message['topic'] !== HISTORY_TOPIC) return;
  const { to, ask } = message;
  if (typeof to !== 'number' || typeof ask !== 'number') return;
  if (sendTo(to, { ...message, from }) || message['question'] === undefined) return;
  sendTo(from, { topic: HISTORY_TOPIC, ask, answer: {} });
}

/** The worker that an id names; undefined for what is no id of ours. */
function homeOf(id: string): number | undefined {
  const digits = /^resp_mizu_([0-9a-f]{4})[0-9a-f]{28}$/.exec(id)?.[1];
  return digits === undefined ? undefined : Number.parseInt(digits, 16);
}

function answerTo(history: ResponseHistory, question: JsonObject): JsonObject {
  const { id, owner, previousId } = question;
  if (typeof id !== 'string' || typeof owner !== 'string') return {};
  if (question['do'] === 'find') {
    const turn = history.find(id, owner);
    if (turn === undefined) return { found: false };
    return { found: true, input: wire(allItems(turn)), stored: [...storedItemsOf(turn)].map(pair) };
  }
  const parent = typeof previousId === 'string' ? history.find(previousId, owner) : undefined;
  if (typeof previousId === 'string' && parent === undefined) return { isMissing: true };
  return { isSaved: history.save(id, owner, pastTurn({ ...readTurn(question), parent })) };
}

function wire({ bytes, count }: ItemTexts): JsonObject {
  return { text: bytes.toString(), count };
}

function pair([itemId, channelId]: readonly [string, string]): JsonValue {
  return [itemId, channelId];
}

function readItems(value: JsonValue | undefined): ItemTexts {
  if (!isObject(value) || typeof value['text'] !== 'string' || typeof value['count'] !== 'number') return NO_ITEMS;
  return value['count'] === 0 ? NO_ITEMS : { ...itemTexts([value['text']]), count: value['count'] };
}

function readTurn(message: JsonObject): PastTurn {
  const stored = new Map<string, string>();
  for (const entry of Array.isArray(message['stored']) ? message['stored'] : []) {
    if (!Array.isArray(entry)) continue;
    const [itemId, channelId]: readonly JsonValue[] = entry;
    if (typeof itemId === 'string' && typeof channelId === 'string') stored.set(itemId, channelId);
  }
  const ids = message['itemIds'];
  return pastTurn({
    parent: undefined,
    input: readItems(message['input']),
    output: readItems(message['output']),
    storedItems: stored,
    itemIds: Array.isArray(ids) ? ids.filter((id) => typeof id === 'string') : [],
  });
}
