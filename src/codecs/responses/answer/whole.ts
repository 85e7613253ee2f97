/**
 * Whole bodies: they decode to the same events as a stream of the same answer, and are encoded as the object of its terminal
 * event.
 */
import { responseLosses } from '../losses.ts';
import { AnswerLosses } from '../../answers/losses.ts';
import { upstreamFault } from '../../canonical/error.ts';
import type { CanonicalEvent, Native, Step } from '../../canonical/event.ts';
import { Fold, type Whole } from '../../canonical/fold.ts';
import { unfold } from '../../canonical/item-emitter.ts';
import { isObject, type JsonObject } from '../../canonical/json.ts';
import type { DecodeContext, ResponseContext } from '../../codec.ts';
import { editJson, type JsonEdit } from '../../json/edit.ts';
import { readTextInSteps } from '../../json/parse-in-steps.ts';
import { writeInSteps } from '../../json/write-in-steps.ts';
import { endsStep, type Steps } from '../../steps.ts';
import { Assembler } from './assemble.ts';
import { cutStatusOf, statusOf } from './decode-items.ts';
import { errorOf, finalStatus, readOutcome, readUsage, startOf } from './outcome.ts';
import { emptyResponse, finishedMembers } from './response-object.ts';
import { responseEdits } from './splice.ts';
import { finishedItems } from './sent-items.ts';
import { arrayOrEmpty, checkId, missingId, needString } from '../wire.ts';
import { newTrack } from '../lifecycle.ts';
import { ItemWriter } from './encode-items.ts';

const DIALECT = 'responses';

/**
 * Spec rule 15: a non-null `error` without a valid status is an error, `{}` is refused, an `output` array without error and
 * status is a completed answer. An unfinished status (`queued`, `in_progress`) is no answer.
 */
export function* decodeInSteps(text: string, context: DecodeContext): Steps<Step> {
  const { json, ends } = yield* parseBody(text);
  yield;
  const { error, output } = json;
  const status = finalStatus(json);
  if (status === undefined) {
    if (error !== undefined && error !== null) throw errorOf(error, text);
    const given = json['status'];
    if ((given !== undefined && given !== null) || !Array.isArray(output)) throw undecodable();
  }
  if (output !== undefined && output !== null && !Array.isArray(output)) throw undecodable();
  if (status === 'completed' && !Array.isArray(output)) throw undecodable();
  const items = new Assembler(context);
  items.tools = json['tools'];
  const events: CanonicalEvent[] = [startOf(json)];
  const listed = output ?? [];
  for (const [index, item] of listed.entries()) {
    if (endsStep(index)) yield;
    if (!isObject(item)) throw undecodable();
    const type = needString(item, 'type', 'output item');
    checkId(item);
    const ending = (status ?? 'completed') === 'completed' ? statusOf(item) : cutStatusOf(item, index === listed.length - 1);
    items.finish(items.added(newTrack(index, type), item, events), item, ending, events);
  }
  const usage = readUsage(json);
  if (usage !== undefined) events.push({ type: 'usage.report', usage });
  events.push({ type: 'response.end', outcome: readOutcome(status ?? 'completed', json, items.hasCalls, text) });
  return { native: { dialect: DIALECT, name: 'response', text, json, ends }, events };
}

function* parseBody(text: string): Steps<{ readonly json: JsonObject; readonly ends: Native['ends'] }> {
  const { json, ends } = yield* readTextInSteps(text);
  if (!isObject(json)) throw undecodable();
  return { json, ends };
}

function undecodable() {
  return upstreamFault('undecodable', 'The upstream answered with something that is no finished response.');
}

/** What an upstream may leave out (spec rule 15), and without which the official SDK finds no text in a body. */
function envelopeEdits({ object, created_at: createdAt }: JsonObject, context: ResponseContext): JsonEdit[] {
  const edits: JsonEdit[] = [];
  if (typeof object !== 'string' || object === '') edits.push({ path: ['object'], value: '"response"' });
  if (typeof createdAt !== 'number') edits.push({ path: ['created_at'], value: String(context.createdAt) });
  return edits;
}

/** Failed and cancelled answers have a body too, with their items, usage and the error. */
export function* encodeInSteps(whole: Whole, native: Native | undefined, context: ResponseContext): Steps<string> {
  if (native?.dialect === DIALECT && isObject(native.json)) {
    const edits = [...envelopeEdits(native.json, context), ...responseEdits([], native.json, context, whole.outcome)];
    for (const [index, item] of arrayOrEmpty(native.json, 'output', 'response').entries()) {
      const id = isObject(item) ? missingId(item, context.mint) : undefined;
      if (id !== undefined) edits.push({ path: ['output', index, 'id'], value: JSON.stringify(id) });
    }
    return editJson(native.text, edits, native.ends);
  }
  const ignore = () => undefined;
  const writer = new ItemWriter(context, ignore, ignore);
  const kept = new AnswerLosses(DIALECT, responseLosses, context).keptWhole(whole);
  const fold = new Fold();
  writer.fold = fold;
  for (const [index, item] of kept.items.entries()) {
    if (endsStep(index)) yield;
    for (const event of unfold(index, item)) {
      fold.push(event);
      writer.write(event);
    }
  }
  writer.finish();
  yield;
  const base = emptyResponse(context, kept.createdAt);
  const finished = finishedMembers(context, base['service_tier'], finishedItems(writer.sent), kept.usage, kept.outcome);
  return yield* writeInSteps({ ...base, ...finished });
}
