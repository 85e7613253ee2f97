/**
 * The history of several worker processes. A response id names the worker that keeps it, and every turn of a conversation is kept
 * by the worker of the first, so that the chain stays in one process. Other workers ask that one through the primary. What does
 * not arrive in time is unknown, and clients then send everything again. Item ids are mostly the upstream's and name no worker:
 * items that are not kept here are asked of all other workers at once.
 */
import { isObject, type JsonObject, type JsonValue } from '../../codecs/canonical/json.ts';
import type { Mint } from '../../codecs/codec.ts';
import type { Clock } from '../../streams/clock.ts';
import { AnswerLine } from './answer-line.ts';
import { type Memory, type NewTurn, RESPONSE_ID_PREFIX } from './memory.ts';
import { allItems, type ItemTexts, itemTexts, joinItems, NO_ITEMS, type PastTurn, pastTurn, storedItemsOf } from './past-turn.ts';
import type { ResponseHistory } from './response-history.ts';

/** How a worker reaches the others: the primary routes by `to` and adds `from`. */
export interface WorkerLink {
  send(message: JsonObject): void;
  onMessage(listener: (message: unknown) => void): void;
}

/** How the primary reaches its workers. */
export interface WorkerRouter {
  workers(): readonly number[];
  /** False when that one is not there. */
  sendTo(worker: number, message: JsonObject): boolean;
}

export interface WorkersMemoryOptions {
  readonly history: ResponseHistory;
  readonly mint: Mint;
  /** The number of this worker, unique, 0 to 65535. */
  readonly worker: number;
  readonly link: WorkerLink;
  readonly clock: Clock;
}

/** A question that waits for its answers. */
interface Asked {
  readonly hear: (message: JsonObject) => void;
  /** With the answers that there are. */
  readonly settle: () => void;
}

const ANSWER_MS = 2_000;
/** Longer answers wait for one another. */
const LONG_BYTES = 256 * 1024;
const WORKER_DIGITS = 4;
/** Tells these messages from others on the same channel. */
const HISTORY_TOPIC = 'mizu.history';
/** A question to every other worker. */
const OTHERS = 'others';

export function workersMemory(options: WorkersMemoryOptions): Memory {
  const { history, mint, worker, link, clock } = options;
  const asked = new Map<number, Asked>();
  /** What others are being asked for: many requests at once that continue one response bring it here once. */
  const finding = new Map<string, Promise<PastTurn | undefined>>();
  const long = new AnswerLine(clock, ANSWER_MS);
  let count = 0;

  /** All answers that came in time. */
  const gather = (to: number | typeof OTHERS, question: JsonObject): Promise<readonly JsonObject[]> =>
    new Promise((resolve) => {
      const ask = ++count;
      const answers: JsonObject[] = [];
      let expected = to === OTHERS ? Number.POSITIVE_INFINITY : 1;
      const settle = (): void => {
        timer.cancel();
        asked.delete(ask);
        resolve(answers);
      };
      const timer = clock.setTimeout(settle, ANSWER_MS);
      const hear = ({ answer, others }: JsonObject): void => {
        if (typeof others === 'number') expected = others;
        else answers.push(isObject(answer) ? answer : {});
        if (answers.length >= expected) settle();
      };
      asked.set(ask, { hear, settle });
      link.send({ topic: HISTORY_TOPIC, to, ask, question });
    });
  const ask = async (to: number, question: JsonObject): Promise<JsonObject | undefined> => (await gather(to, question))[0];

  link.onMessage((message) => {
    if (!isObject(message) || message['topic'] !== HISTORY_TOPIC) return;
    const { ask: number, from, question, isLong, hasArrived } = message;
    if (typeof number !== 'number') return;
    if (hasArrived === true) {
      long.arrived(`${from} ${number}`);
      return;
    }
    if (isObject(question) && typeof from === 'number') {
      const { bytes, answer } = answerTo(history, question);
      const reply = { topic: HISTORY_TOPIC, to: from, ask: number };
      if (bytes < LONG_BYTES) link.send({ ...reply, answer: answer() });
      else
        long.add(String(question['owner']), `${from} ${number}`, () => link.send({ ...reply, isLong: true, answer: answer() }));
      return;
    }
    if (isLong === true && typeof from === 'number') link.send({ topic: HISTORY_TOPIC, to: from, ask: number, hasArrived: true });
    asked.get(number)?.hear(message);
  });

  const findAt = (home: number, id: string, owner: string): Promise<PastTurn | undefined> => {
    const name = `${owner}\n${id}`;
    const under = finding.get(name);
    if (under !== undefined) return under;
    const found = ask(home, { do: 'find', id, owner }).then((answer) => {
      finding.delete(name);
      return answer?.['found'] === true ? readTurn(answer) : undefined;
    });
    finding.set(name, found);
    return found;
  };

  const save = async (to: number, { id, owner, turn, previousId }: NewTurn): Promise<void> => {
    const { output, storedItems, itemIds } = turn;
    const question = { do: 'save', id, owner, output: wire(output), stored: [...storedItems].map(pair), itemIds };
    const previous = previousId === undefined ? {} : { previousId };
    const answer = await ask(to, { ...question, ...previous, input: wire(turn.input) });
    // The other worker does not have the turn before (only a connection held it), so the whole conversation is sent.
    if (answer?.['isMissing'] === true) {
      const before = turn.parent === undefined ? NO_ITEMS : allItems(turn.parent);
      await ask(to, { ...question, input: wire(joinItems([before, turn.input])), stored: [...storedItemsOf(turn)].map(pair) });
    }
  };

  return {
    get bytes() {
      return history.bytes;
    },
    responseId(previousId) {
      const home = (previousId === undefined ? undefined : homeOf(previousId)) ?? worker;
      const digits = home.toString(16).padStart(WORKER_DIGITS, '0');
      return RESPONSE_ID_PREFIX + digits + mint('').slice(WORKER_DIGITS);
    },
    find(id, owner) {
      const home = homeOf(id);
      if (home === undefined || home === worker) return history.find(id, owner);
      return findAt(home, id, owner);
    },
    turnsOf({ itemIds, owner, maxBytes }) {
      const own = history.turnsOf(itemIds, owner);
      const unknown = itemIds.filter((id) => !own.has(id));
      if (unknown.length === 0) return own;
      return gather(OTHERS, { do: 'items', itemIds: unknown, owner, maxBytes }).then(
        (answers) => new Map([...answers.flatMap(readTurns), ...own]),
      );
    },
    save(turn) {
      const home = homeOf(turn.id);
      if (home !== undefined && home !== worker) return save(home, turn);
      history.save(turn.id, turn.owner, turn.turn);
      return undefined;
    },
    keep: (owner, turn, bytes, onDropped) => history.keep(owner, turn, bytes, onDropped),
    close() {
      for (const { settle } of [...asked.values()]) settle();
      long.close();
      history.close();
    },
  };
}

/** In the primary: passes a message on, and tells its sender where the addressee is gone, or how many workers were asked. */
export function routeMessage(message: unknown, from: number, { workers, sendTo }: WorkerRouter): void {
  if (!isObject(message) || message['topic'] !== HISTORY_TOPIC) return;
  const { to, ask } = message;
  if (typeof ask !== 'number') return;
  if (to === OTHERS) {
    const others = workers().filter((worker) => worker !== from && sendTo(worker, { ...message, from })).length;
    sendTo(from, { topic: HISTORY_TOPIC, ask, others });
    return;
  }
  if (typeof to !== 'number') return;
  if (sendTo(to, { ...message, from }) || message['question'] === undefined) return;
  sendTo(from, { topic: HISTORY_TOPIC, ask, answer: {} });
}

/** The worker that an id names; undefined for what is no id of ours. */
function homeOf(id: string): number | undefined {
  const digits = /^resp_mizu_([0-9a-f]{4})[0-9a-f]{28}$/.exec(id)?.[1];
  return digits === undefined ? undefined : Number.parseInt(digits, 16);
}

/** An answer that is made when it is sent. */
interface Prepared {
  readonly bytes: number;
  readonly answer: () => JsonObject;
}

function answerTo(history: ResponseHistory, question: JsonObject): Prepared {
  const { id, owner, previousId } = question;
  if (question['do'] === 'items') return namedTurns(history, question);
  if (typeof id !== 'string' || typeof owner !== 'string') return short({});
  if (question['do'] === 'find') {
    const turn = history.find(id, owner);
    if (turn === undefined) return short({ found: false });
    const answer = () => ({ found: true, input: wire(allItems(turn)), stored: [...storedItemsOf(turn)].map(pair) });
    return { bytes: turn.totalBytes, answer };
  }
  const parent = typeof previousId === 'string' ? history.find(previousId, owner) : undefined;
  if (typeof previousId === 'string' && parent === undefined) return short({ isMissing: true });
  history.save(id, owner, pastTurn({ ...readTurn(question), parent }));
  return short({});
}

function short(answer: JsonObject): Prepared {
  return { bytes: 0, answer: () => answer };
}

/** Stops once the limit is exceeded, which tells the caller that it is too much. */
function namedTurns(history: ResponseHistory, { itemIds, owner, maxBytes }: JsonObject): Prepared {
  const turns: PastTurn[] = [];
  let bytes = 0;
  if (typeof owner === 'string' && typeof maxBytes === 'number')
    for (const turn of new Set(history.turnsOf(stringsOf(itemIds), owner).values())) {
      turns.push(turn);
      bytes += turn.output.bytes.length;
      if (bytes > maxBytes) break;
    }
  return { bytes, answer: () => ({ turns: turns.map(({ output, itemIds: ids }) => ({ output: wire(output), itemIds: ids })) }) };
}

function readTurns({ turns }: JsonObject): (readonly [string, PastTurn])[] {
  return (Array.isArray(turns) ? turns : []).filter(isObject).flatMap((message) => {
    const turn = readTurn(message);
    return turn.itemIds.map((id) => [id, turn] as const);
  });
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
  return pastTurn({
    parent: undefined,
    input: readItems(message['input']),
    output: readItems(message['output']),
    storedItems: stored,
    itemIds: stringsOf(message['itemIds']),
  });
}

function stringsOf(value: JsonValue | undefined): readonly string[] {
  return Array.isArray(value) ? value.filter((entry) => typeof entry === 'string') : [];
}
