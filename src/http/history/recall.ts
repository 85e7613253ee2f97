/**
 * Expands a responses request before it is decoded: the conversation that it continues is put in front of its input, so that every upstream
 * dialect gets a whole conversation. Nothing else is inherited, not even `instructions`.
 */
import { GatewayError, invalid } from '../../codecs/canonical/error.ts';
import { isObject, type JsonObject, type JsonValue, parseJson } from '../../codecs/canonical/json.ts';
import { withSummaries } from '../../codecs/responses/summary.ts';
import { wrongType } from '../../codecs/requests/members.ts';
import type { Principal } from '../../store/keys.ts';
import type { Gateway } from '../gateway.ts';
import type { PreparedRequest } from '../text/prepared-request.ts';
import { idsToFind, namedItems } from './named-items.ts';
import type { TurnsByItem } from './memory.ts';
import { ownerOf } from './owner-of.ts';
import { inputItems, itemTexts, NO_ITEMS, type PastTurn, pastTurn, storingChannel, withHistory } from './past-turn.ts';
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
  const past = await gateway.memory.find(id, ownerOf(principal));
  if (past === undefined) throw previousResponseNotFound(id);
  return past;
}

export interface RecallOptions {
  readonly gateway: Gateway;
  readonly principal: Principal;
  readonly text: string;
  readonly json: JsonObject;
  readonly past: PastTurn | undefined;
  /** Called with the finished turn before its last event is sent. */
  readonly onTurn?: (turn: PastTurn, answered: Answered) => void;
}

/** The request with its history, the items that it names by id, and a callback that saves the answer. */
export async function recall({ gateway, principal, text, json, past, onTurn }: RecallOptions): Promise<PreparedRequest> {
  const { memory } = gateway;
  const previousId = past === undefined ? undefined : previousIdOf(json);
  const responseId = memory.responseId(previousId);
  const isKept = json['store'] !== false && (json['conversation'] === undefined || json['conversation'] === null);
  const isRemembered = isKept || onTurn !== undefined;
  if (past !== undefined) refuseOtherInput(json['input']);
  const own = isRemembered || past !== undefined ? inputItems(text, json) : NO_ITEMS;
  const asked = past === undefined ? { text, json } : parsed(withHistory(text, own, past));
  const whole = withSummaries(asked, (sealed) => gateway.envelopes.open(sealed, principal.account.id), parsed);
  const turns = await turnsOfItems(gateway, principal, whole.json);
  return {
    principal,
    ...whole,
    item: namedItems(turns, gateway.config.current().history.entryBytes),
    stored: (channelId) => (itemId) => (storingChannel(past, itemId) ?? storingChannel(turns.get(itemId), itemId)) === channelId,
    responseId,
    ...(previousId === undefined ? {} : { previousResponseId: previousId }),
    ...(past === undefined
      ? {}
      : {
          own: { itemsBefore: past.totalItems, isText: typeof json['input'] === 'string' },
        }),
    ...(isRemembered
      ? {
          remember: (answered: Answered) => {
            const { output, storedItems, itemIds } = answered;
            const turn = pastTurn({ parent: past, input: own, output: itemTexts(output), storedItems, itemIds });
            onTurn?.(turn, answered);
            if (!isKept) return undefined;
            return memory.save({
              id: responseId,
              owner: ownerOf(principal),
              turn,
              ...(previousId === undefined ? {} : { previousId }),
            });
          },
        }
      : {}),
  };
}

const NO_TURNS: TurnsByItem = new Map();

/** The stored turns of the items that a request names only by id. */
async function turnsOfItems({ memory, config }: Gateway, principal: Principal, json: JsonObject): Promise<TurnsByItem> {
  const itemIds = idsToFind(json);
  if (itemIds.length === 0) return NO_TURNS;
  return await memory.turnsOf({ itemIds, owner: ownerOf(principal), maxBytes: config.current().history.entryBytes });
}

/** The history makes the input a list: any other value of the client's would be lost silently. */
function refuseOtherInput(input: JsonValue | undefined): void {
  if (input === undefined || input === null || typeof input === 'string' || Array.isArray(input)) return;
  throw wrongType('input', 'a string or an array of items');
}

export function parsed(text: string): { readonly text: string; readonly json: JsonObject } {
  const json = parseJson(text);
  if (!isObject(json)) throw new Error('a request body is an object');
  return { text, json };
}
