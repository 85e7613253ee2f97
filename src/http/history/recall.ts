/**
 * Expands a responses request before it is decoded: the conversation that it continues is put in front of its input, so that
 * every upstream dialect gets a whole conversation. Nothing else is inherited, not even `instructions`.
 */
import { GatewayError, invalid } from '../../codecs/canonical/error.ts';
import { isObject, type JsonObject, type JsonValue, parseJson } from '../../codecs/canonical/json.ts';
import type { Opaque } from '../../codecs/canonical/opaque.ts';
import { parseInSteps } from '../../codecs/json/parse-in-steps.ts';
import { endsInTrigger, isSummary, namedSummary, textsBeside, withSummaries } from '../../codecs/responses/summary.ts';
import { wrongType } from '../../codecs/requests/members.ts';
import type { Steps } from '../../codecs/steps.ts';
import type { Principal } from '../../store/keys.ts';
import { within } from '../../streams/clock.ts';
import type { Gateway } from '../gateway.ts';
import { checkFigures, type JsonBody, valueLimit } from '../request/body.ts';
import type { KeySlot } from '../request/key-slots.ts';
import type { PreparedRequest } from '../text/prepared-request.ts';
import { idsToFind, namedItems } from './named-items.ts';
import type { TurnsByItem } from './memory.ts';
import { refuseOrphanResults } from './orphan-results.ts';
import { ownerOf } from './response-history.ts';
import {
  inputItems,
  type ItemTexts,
  itemTextsInSteps,
  NO_ITEMS,
  type PastTurn,
  pastTurn,
  storedItemsOf,
  withHistory,
} from './past-turn.ts';
import type { Answered } from './remembering.ts';

/** The response id that a request continues. Throws `invalid_request` where it names native state too. */
export function previousIdOf(json: JsonObject): string | undefined {
  const previous = json['previous_response_id'];
  if (typeof previous !== 'string') return undefined;
  if (json['conversation'] !== undefined && json['conversation'] !== null) {
    throw invalid('previous_response_id', 'previous_response_id and conversation must not be used together.');
  }
  return previous;
}

function previousResponseNotFound(id: string): GatewayError {
  const shown = id.length > 100 ? `${id.slice(0, 100)}…` : id;
  return new GatewayError('previous_response_not_found', `Previous response with id ${JSON.stringify(shown)} not found.`, {
    param: 'previous_response_id',
  });
}

/** The response that a request over HTTP continues. Throws `previous_response_not_found`. */
export async function findPrevious(gateway: Gateway, principal: Principal, json: JsonObject): Promise<PastTurn | undefined> {
  const id = previousIdOf(json);
  if (id === undefined) return undefined;
  const past = await recalled(gateway, gateway.memory.find(id, ownerOf(principal)), undefined);
  if (past === undefined) throw previousResponseNotFound(id);
  return past;
}

export interface RecallOptions {
  readonly gateway: Gateway;
  readonly principal: Principal;
  readonly body: JsonBody;
  readonly past: PastTurn | undefined;
  /** What the key has taken for the request; what is brought back is added to it. */
  readonly slot: KeySlot;
  /** Called with the finished turn before its last event is sent. */
  readonly onTurn?: (turn: PastTurn, answered: Answered) => Promise<void> | undefined;
}

/**
 * The request with its history, the items that it names by id, and a callback that saves the answer. What is brought back counts
 * like a body: throws `request_too_large`, `rate_limited` and `overloaded` as for one.
 */
export async function recall({ gateway, principal, body, past, slot, onTurn }: RecallOptions): Promise<PreparedRequest> {
  const { memory } = gateway;
  const { text, json } = body;
  const { history, limits } = gateway.config.current();
  const previousId = past === undefined ? undefined : previousIdOf(json);
  const responseId = memory.responseId(previousId);
  const isKept = json['store'] !== false && (json['conversation'] === undefined || json['conversation'] === null);
  const isRemembered = isKept || onTurn !== undefined;
  if (past !== undefined) refuseOtherInput(json['input']);
  const own = isRemembered || past !== undefined ? await gateway.largeWork.of(text, inputItems(body)) : NO_ITEMS;
  const asked = past === undefined ? body : await expanded(gateway, body, own, past, slot);
  const open = gateway.envelopes.opener(principal.account.id);
  const whole = await gateway.largeWork.of(asked.text, withSummaries(asked, open));
  const beside = isRemembered && endsInTrigger(json) ? await gateway.largeWork.of(whole.text, itemsBeside(whole)) : undefined;
  const turns = await turnsOfItems(gateway, principal, whole.json);
  const named = namedItems(turns, { maxBytes: history.entryBytes, maxValues: limits.jsonValues });
  let storedBy: ReadonlyMap<string, string> | undefined;
  return {
    principal,
    ...whole,
    item: (id) => {
      const found = named(id);
      return found === undefined ? undefined : namedSummary(found, open);
    },
    stored: (channelId) => {
      // A conversation of very many turns is not gone through for each of its items.
      storedBy ??= past === undefined ? NONE_STORED : storedItemsOf(past);
      const known = storedBy;
      return (itemId) => (known.get(itemId) ?? turns.get(itemId)?.storedItems.get(itemId)) === channelId;
    },
    responseId,
    ...(previousId === undefined ? {} : { previousResponseId: previousId }),
    ...(past === undefined
      ? {}
      : {
          own: { itemsBefore: past.totalItems, isText: typeof json['input'] === 'string' },
          inspect: (request) => refuseOrphanResults(request, past.totalItems),
        }),
    ...(isRemembered
      ? {
          remember: (answered: Answered) => {
            const { output, storedItems, itemIds } = answered;
            const before = beside !== undefined && isOneSummary(output, open) ? beside : undefined;
            const asked = before === undefined ? { parent: past, input: own } : { parent: undefined, input: before };
            const turn = pastTurn({ ...asked, output, storedItems, itemIds });
            const told = onTurn?.(turn, answered);
            if (!isKept) return told;
            const saved = memory.save({
              id: responseId,
              owner: ownerOf(principal),
              turn,
              ...(previousId === undefined || turn.parent === undefined ? {} : { previousId }),
            });
            return told === undefined || saved === undefined ? (told ?? saved) : Promise.all([told, saved]).then(() => undefined);
          },
        }
      : {}),
  };
}

/** What goes on beside a summary, whose turn is the first of what follows: the turns before it are what it stands for. */
function* itemsBeside(asked: Parameters<typeof textsBeside>[0]): Steps<ItemTexts> {
  return yield* itemTextsInSteps(yield* textsBeside(asked));
}

function isOneSummary(output: ItemTexts, open: (sealed: string) => Opaque | undefined): boolean {
  if (output.count !== 1) return false;
  const item = parseJson(output.bytes.toString());
  return isObject(item) && isSummary(item, open);
}

const NONE_STORED: ReadonlyMap<string, string> = new Map();
const NO_TURNS: TurnsByItem = new Map();

/** The stored turns of the items that a request names only by id. */
async function turnsOfItems(gateway: Gateway, principal: Principal, json: JsonObject): Promise<TurnsByItem> {
  const itemIds = idsToFind(json);
  if (itemIds.length === 0) return NO_TURNS;
  const maxBytes = gateway.config.current().history.entryBytes;
  return await recalled(gateway, gateway.memory.turnsOf({ itemIds, owner: ownerOf(principal), maxBytes }), NO_TURNS);
}

/** Another worker that keeps it answers sooner, or is gone. */
const RECALL_MS = 10_000;

/** What is not told in time is unknown, as it is when the process that kept it has ended. */
async function recalled<T>({ clock, log }: Gateway, found: T | Promise<T>, unknown: T): Promise<T> {
  if (!(found instanceof Promise)) return found;
  const late = new Error(`the history did not answer within ${RECALL_MS} ms`);
  return await within(clock, RECALL_MS, found, () => late).catch((thrown: unknown) => {
    if (thrown !== late) throw thrown;
    log.error({ err: late }, 'history');
    return unknown;
  });
}

/** The history makes the input a list: any other value of the client's would be lost silently. */
function refuseOtherInput(input: JsonValue | undefined): void {
  if (input === undefined || input === null || typeof input === 'string' || Array.isArray(input)) return;
  throw wrongType('input', 'a string or an array of items');
}

/** Weighed before it is made, and again before it is parsed. */
async function expanded(
  { config, largeWork }: Gateway,
  body: JsonBody,
  own: ItemTexts,
  past: PastTurn,
  slot: KeySlot,
): Promise<JsonBody> {
  const { limits } = config.current();
  const { jsonBytes } = limits;
  const bytes = past.totalBytes + body.text.length;
  if (bytes > jsonBytes)
    throw new GatewayError('request_too_large', `The request and what it continues have more than ${jsonBytes} bytes.`, {
      param: 'previous_response_id',
    });
  slot.growTo(bytes);
  return await largeWork.of(
    { length: bytes },
    (function* () {
      const whole = yield* withHistory(body, own, past);
      yield;
      yield* checkFigures(
        whole,
        valueLimit(limits, (values, characters) => slot.setWeight(Buffer.byteLength(whole), values, characters)),
      );
      yield;
      return { text: whole, json: bodyOf(yield* parseInSteps(whole)) };
    })(),
  );
}

function bodyOf(json: JsonValue): JsonObject {
  if (!isObject(json)) throw new Error('a request body is an object');
  return json;
}
