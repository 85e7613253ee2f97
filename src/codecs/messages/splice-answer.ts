/**
 * A messages stream for a messages client: every byte stays but the gateway's own members (response id, model, sealed opaque
 * values, error text), and what would break a client: sparse indices, a missing content_block_stop, missing members, upstream pings.
 */
import { type GatewayError, upstreamFault } from '../canonical/error.ts';
import type { Native, Step } from '../canonical/event.ts';
import { isObject, type JsonObject, type JsonValue } from '../canonical/json.ts';
import type { Frame, ResponseContext } from '../codec.ts';
import { RepeatedEdits } from '../json/repeated-native.ts';
import { editJson, type JsonEdit, type JsonPath } from '../json/text.ts';
import { completeBlock, completeDelta, completeMessage } from './answer-members.ts';
import { redactedOpaque, signatureOpaque } from './opaque-values.ts';
import { codesOf, errorFrame } from './errors.ts';

/** Types of upstream errors that speak of the gateway's own credential or route: clients get a general one. */
const OUR_ERRORS: ReadonlySet<string> = new Set(['authentication_error', 'billing_error', 'permission_error', 'not_found_error']);

/** Events between the first `message_delta` and `message_stop`: one or two are seen, and nobody is told anything meanwhile. */
const MAX_HELD = 256;

interface OpenBlock {
  readonly wire: number;
  readonly mine: number;
  readonly type: string;
  /** The signature so far: sealed only when the block stops, since it is one complete value. */
  signature: string;
  /** The text of the last signature_delta, to be spliced with the complete value. */
  signatureText: string | undefined;
}

export class AnswerSplicer {
  readonly #context: ResponseContext;
  /** Indices given out so far, and the next one. */
  #blocks = 0;
  #open: OpenBlock | undefined;
  /** The good ending from its `message_delta` on: said with `message_stop`, since none may come before an error (design, decisions). */
  #ending: Frame[] | undefined;
  /** The `delta` that said how the answer ended. */
  #stop: JsonObject = {};
  /** Output tokens of the latest report. */
  #output = 0;
  /** What is spliced into a delta of the open block, for those that repeat it. */
  readonly #repeated = new RepeatedEdits();

  constructor(context: ResponseContext) {
    this.#context = context;
  }

  push(native: Native, step: Step, out: Frame[]): void {
    const repeated = this.#repeated.apply(native, native.name);
    if (repeated !== undefined) {
      out.push(repeated);
      return;
    }
    const json = isObject(native.json) ? native.json : {};
    for (const event of step.events) if (event.type === 'usage.report') this.#output = event.usage.output ?? this.#output;
    switch (native.name) {
      case 'ping':
        return;
      case 'message_start':
        out.push(this.#frame(native, this.#startEdits(json)));
        return;
      case 'content_block_start':
        this.#start(native, json, out);
        return;
      case 'content_block_delta':
        this.#delta(native, json, out);
        return;
      case 'content_block_stop':
        this.#closeSignature(out);
        out.push(this.#frame(native, this.#indexEdits()));
        this.#open = undefined;
        return;
      case 'message_delta':
        this.closeOpen(out);
        this.#ending ??= [];
        this.#hold(this.#frame(native, completeDelta(json, this.#output, this.#stop)), this.#ending);
        if (isObject(json['delta']) && typeof json['delta']['stop_reason'] === 'string') this.#stop = json['delta'];
        return;
      case 'message_stop':
        out.push(...(this.#ending ?? []), this.#frame(native, []));
        return;
      case 'error': {
        const said = saidError(json);
        const failure = failureOf(step);
        out.push(said === undefined ? errorFrame(failure) : this.#frame(native, errorEdits(json, said, failure)));
        return;
      }
      default:
        if (this.#ending === undefined) out.push(this.#frame(native, []));
        else this.#hold(this.#frame(native, []), this.#ending);
    }
  }

  /** A cut answer may leave its last block open; clients get every block stopped. */
  closeOpen(out: Frame[]): void {
    if (this.#open === undefined) return;
    out.push({ event: 'content_block_stop', data: JSON.stringify({ type: 'content_block_stop', index: this.#open.mine }) });
    this.#open = undefined;
  }

  #hold(frame: Frame, ending: Frame[]): void {
    if (ending.length >= MAX_HELD)
      throw upstreamFault('malformed_event', `The upstream sent more than ${MAX_HELD} events of an ending.`);
    ending.push(frame);
  }

  #frame(native: Native, edits: readonly JsonEdit[]): Frame {
    return { event: native.name, data: editJson(native.text, edits) };
  }

  #startEdits(json: JsonObject): JsonEdit[] {
    const message = isObject(json['message']) ? json['message'] : {};
    const content = message['content'];
    if (Array.isArray(content)) this.#blocks += content.length;
    return messageEdits(message, ['message'], this.#context);
  }

  #start(native: Native, json: JsonObject, out: Frame[]): void {
    const block = isObject(json['content_block']) ? json['content_block'] : {};
    const type = String(block['type']);
    const wire = Number(json['index']);
    const signature = type === 'thinking' && typeof block['signature'] === 'string' ? block['signature'] : '';
    this.#open = { wire, mine: this.#blocks++, type, signature, signatureText: undefined };
    this.#repeated.forget();
    const path = ['content_block'];
    const edits = [...this.#indexEdits(), ...completeBlock(block, path), ...dataEdits(block, path, this.#context)];
    if (signature !== '') edits.push({ path: [...path, 'signature'], value: '""' });
    out.push(this.#frame(native, edits));
  }

  #delta(native: Native, json: JsonObject, out: Frame[]): void {
    const delta = isObject(json['delta']) ? json['delta'] : {};
    const open = this.#open;
    if (open?.type === 'thinking' && delta['type'] === 'signature_delta') {
      open.signature += String(delta['signature']);
      open.signatureText = native.text;
      return;
    }
    const edits = this.#indexEdits();
    out.push(this.#frame(native, edits));
    this.#repeated.note(native, edits);
  }

  #closeSignature(out: Frame[]): void {
    const open = this.#open;
    if (open === undefined || open.signature === '') return;
    const sealed = this.#context.seal(signatureOpaque(this.#context.owner, open.signature));
    const text = open.signatureText ?? signatureDelta(open.wire, '');
    const edits = [...this.#indexEdits(), { path: ['delta', 'signature'], value: JSON.stringify(sealed) }];
    out.push({ event: 'content_block_delta', data: editJson(text, edits) });
  }

  #indexEdits(): JsonEdit[] {
    const open = this.#open;
    return open === undefined || open.wire === open.mine ? [] : [{ path: ['index'], value: String(open.mine) }];
  }
}

function signatureDelta(index: number, signature: string): string {
  return JSON.stringify({ type: 'content_block_delta', index, delta: { type: 'signature_delta', signature } });
}

/** What is the gateway's in a whole message (or in the message of message_start). */
export function messageEdits(message: JsonObject, path: JsonPath, context: ResponseContext): JsonEdit[] {
  const edits: JsonEdit[] = [
    { path: [...path, 'id'], value: JSON.stringify(context.responseId) },
    { path: [...path, 'model'], value: JSON.stringify(context.model) },
    ...completeMessage(message, path),
  ];
  const content = message['content'];
  if (!Array.isArray(content)) return edits;
  content.forEach((block: JsonValue, at) => {
    if (!isObject(block)) return;
    const own = [...path, 'content', at];
    edits.push(...completeBlock(block, own), ...signatureEdits(block, own, context), ...dataEdits(block, own, context));
  });
  return edits;
}

/** For a whole block: that of a stream gets its signature sealed once it has stopped. */
function signatureEdits({ type, signature }: JsonObject, path: JsonPath, context: ResponseContext): JsonEdit[] {
  if (type !== 'thinking' || typeof signature !== 'string' || signature === '') return [];
  const sealed = context.seal(signatureOpaque(context.owner, signature));
  return [{ path: [...path, 'signature'], value: JSON.stringify(sealed) }];
}

function dataEdits({ type, data }: JsonObject, path: JsonPath, context: ResponseContext): JsonEdit[] {
  if (type !== 'redacted_thinking' || typeof data !== 'string') return [];
  return [{ path: [...path, 'data'], value: JSON.stringify(context.seal(redactedOpaque(context.owner, data))) }];
}

function failureOf(step: Step): GatewayError {
  const last = step.events.at(-1);
  if (last?.type === 'response.end' && 'error' in last.outcome) return last.outcome.error;
  return upstreamFault('error_event', 'The upstream failed.');
}

/** An error in this dialect's own words, with a type that clients can act on. */
function saidError(json: JsonObject): JsonObject | undefined {
  const { type, error } = json;
  return type === 'error' && isObject(error) && typeof error['type'] === 'string' ? error : undefined;
}

/** Only the type, a readable message and known codes of an upstream's error are for clients; everything beside them may name accounts. */
function errorEdits(json: JsonObject, said: JsonObject, failure: GatewayError): JsonEdit[] {
  const edits: JsonEdit[] = Object.keys(json)
    .filter((key) => key !== 'type' && key !== 'error')
    .map((key) => ({ path: [key], value: undefined }));
  const codes = codesOf(said, failure);
  for (const key of Object.keys(said)) {
    const code = codes[key];
    if (key !== 'type' && key !== 'message')
      edits.push({ path: ['error', key], value: code === undefined ? undefined : JSON.stringify(code) });
  }
  edits.push({ path: ['error', 'message'], value: JSON.stringify(failure.message) });
  if (OUR_ERRORS.has(String(said['type']))) edits.push({ path: ['error', 'type'], value: '"api_error"' });
  return edits;
}
