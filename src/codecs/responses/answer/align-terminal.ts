/**
 * Aligns the items of a terminal event with those that were streamed: it may add items and end open ones, but never contradict.
 * Items that only the terminal has, or that were not streamed to their end, get their events before it, since agents build their
 * answer from item events alone (design, decisions). Behind this every terminal lists every item once, in the order of their
 * indices; items that a failure leaves out are kept (spec rule 8).
 */
import { upstreamFault } from '../../canonical/error.ts';
import { isObject, type JsonObject, type JsonValue } from '../../canonical/json.ts';
import { editJson } from '../../json/edit.ts';
import { sliceElements } from '../../json/text.ts';
import { entryEdits } from './backfill.ts';
import { cutStatusOf, statusOf } from './decode-items.ts';
import { checkRestated, matchOutput, unusedIndices } from './match-output.ts';
import { type Ending, emitMissing, type Insert, toldItem } from './missing-events.ts';
import { statusOfTerminal } from './outcome.ts';
import { closeItem } from './sent-items.ts';
import type { Slot } from './slot.ts';
import { edited, type EventText, malformed } from '../wire.ts';

const DONE = 'response.output_item.done';

/** An item of the new list: as the terminal has it at a position, or as its own end has it. */
type Listed = { readonly position: number } | { readonly item: JsonObject };

/** Inserts the missing events. Returns the terminal with all items. Throws GatewayError blaming the upstream. */
export function alignTerminal(name: string, event: EventText, slots: ReadonlyMap<number, Slot>, insert: Insert): EventText {
  const { response } = event.json;
  // Such an event is no answer, or has nothing but the end.
  if (!isObject(response) || Object.keys(response).length === 0) return event;
  const match = matchOutput(outputOf(response), slots);
  const filled = edited(event, match.found.flatMap(entryEdits));
  const output = outputOf(filled.json['response']);
  const status = statusOfTerminal(name, response);
  const isFailure = status === 'failed' || status === 'cancelled';
  const cut: Ending = { as: isFailure ? 'open' : 'streamed', status: 'incomplete' };
  const endingOf = (item: JsonObject, position: number): Ending => {
    const own = status === 'completed' ? statusOf(item) : cutStatusOf(item, position === output.length - 1);
    return { as: 'finished', status: own };
  };
  const list = new Map<number, Listed>();
  const entries = new Map(match.found.map((entry) => [entry.streamed, entry]));
  for (const slot of [...slots.values()].sort((a, b) => a.outputIndex - b.outputIndex)) {
    const position = entries.get(slot)?.position;
    const item = position === undefined ? undefined : output[position];
    if (slot.closed) {
      if (isObject(item) && !isFailure) checkRestated(slot, item);
      list.set(slot.outputIndex, position === undefined ? { item: slot.item } : { position });
    } else if (position !== undefined && isObject(item)) {
      const { id, call_id: callId = item['call_id'] } = slot.item;
      // A copy, since what an item has of the terminal goes out as it stands there.
      const final = { ...item, ...(callId === undefined ? {} : { call_id: callId }) };
      emitMissing(slot, slot.outputIndex, final, insert);
      insert(DONE, { output_index: slot.outputIndex, item: final }, endingOf(item, position));
      list.set(slot.outputIndex, item['id'] === id && item['call_id'] === callId ? { position } : { item: final });
    } else if (status !== 'completed') {
      closeItem(toldItem(slot), 'incomplete', (inserted, body) => {
        insert(inserted, body, cut);
        if (inserted === DONE && isObject(body['item'])) list.set(slot.outputIndex, { item: body['item'] });
      });
    }
  }
  if (!isFailure && match.isMissing)
    throw upstreamFault('illegal_lifecycle', "The upstream's terminal event lacks items that it announced.");
  const indexAt = unusedIndices(slots);
  for (const { streamed, position } of match.found) {
    const item = output[position];
    if (streamed !== undefined || !isObject(item)) continue;
    const index = indexAt(position);
    emitMissing(undefined, index, item, insert);
    insert(DONE, { output_index: index, item: { ...item } }, endingOf(item, position));
    list.set(index, { position });
  }
  const inOrder = [...list].sort(([a], [b]) => a - b).map(([, listed]) => listed);
  return withOutput(filled, output, inOrder);
}

function outputOf(response: JsonValue | undefined): readonly JsonValue[] {
  const output = isObject(response) ? response['output'] : undefined;
  if (output !== undefined && output !== null && !Array.isArray(output)) throw malformed('response output');
  return output ?? [];
}

/** The terminal with that list as its output. */
function withOutput(event: EventText, output: readonly JsonValue[], list: readonly Listed[]): EventText {
  const isSame = list.length === output.length && list.every((entry, at) => 'position' in entry && entry.position === at);
  const { response } = event.json;
  if (isSame || !isObject(response)) return event;
  const texts = sliceElements(event.text, ['response', 'output']) ?? [];
  const items = list.map((entry) => ('item' in entry ? entry.item : (output[entry.position] ?? null)));
  const own = list.map((entry) => ('item' in entry ? JSON.stringify(entry.item) : texts[entry.position]));
  return {
    text: editJson(event.text, [{ path: ['response', 'output'], value: `[${own.join(',')}]` }], event.ends),
    json: { ...event.json, response: { ...response, output: items } },
  };
}
