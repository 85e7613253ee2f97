/**
 * Splices the answer of a messages upstream for a messages client. Every byte stays except the gateway's own members (response
 * id, model, sealed opaque values, error text) and what would break a client: sparse indices, a missing content_block_stop,
 * missing members, upstream pings.
 */
import { type GatewayError, upstreamFault } from '../../canonical/error.ts';
import type { Native, Step } from '../../canonical/event.ts';
import { isObject, type JsonObject, type JsonValue } from '../../canonical/json.ts';
import type { Frame, OutFrame, ResponseContext } from '../../codec.ts';
import { RepeatedEdits } from '../../json/repeated-native.ts';
import { editJson, type JsonEdit } from '../../json/edit.ts';
import type { JsonPath } from '../../json/text.ts';
import { completeBlock, completeDelta, completeMessage } from './splice-members.ts';
import { redactedOpaque, signatureOpaque } from '../opaque.ts';
import { codesOf, errorFrame } from '../errors.ts';

/** Upstream errors about the gateway's own credential or route: clients get a general type instead. */
const GATEWAY_ERRORS: ReadonlySet<string> = new Set([
  'authentication_error',
  'billing_error',
  'permission_error',
  'not_found_error',
]);

/** The most events from the first `message_delta` to `message_stop`, which are held back. Real upstreams send one or two. */
const MAX_HELD = 256;

interface OpenBlock {
  /** Its index in the upstream's stream. */
  readonly upstreamIndex: number;
  /** Its index in the client's stream. */
  readonly index: number;
  readonly type: string;
  /** The signature so far. It is sealed when the block stops, since only the complete value can be. */
  signature: string;
  /** The JSON text of the last signature_delta, into which the complete value is spliced. */
  signatureText: string | undefined;
}

export class AnswerSplicer {
  readonly #context: ResponseContext;
  /** The index of the next block in the client's stream. */
  #blocks = 0;
  #open: OpenBlock | undefined;
  /**
   * A successful ending from its `message_delta` on. It is held back until `message_stop`, since none may come before an error
   * (design, decisions).
   */
  #ending: Frame[] | undefined;
  /** The `delta` with the stop reason. */
  #stop: JsonObject = {};
  /** Output tokens by the latest usage report. */
  #output = 0;
  /** The edits of a delta of the open block, for those that repeat its shape. */
  readonly #repeated = new RepeatedEdits();

  constructor(context: ResponseContext) {
    this.#context = context;
  }

  push(native: Native, step: Step, out: OutFrame[]): void {
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
        const given = nativeError(json);
        const failure = failureOf(step);
        out.push(given === undefined ? errorFrame(failure) : this.#frame(native, errorEdits(json, given, failure)));
        return;
      }
      default:
        if (this.#ending === undefined) out.push(this.#frame(native, []));
        else this.#hold(this.#frame(native, []), this.#ending);
    }
  }

  /** Stops the open block: an answer that was cut may leave its last block open. */
  closeOpen(out: OutFrame[]): void {
    if (this.#open === undefined) return;
    out.push({ event: 'content_block_stop', data: JSON.stringify({ type: 'content_block_stop', index: this.#open.index }) });
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

  #start(native: Native, json: JsonObject, out: OutFrame[]): void {
    const block = isObject(json['content_block']) ? json['content_block'] : {};
    const type = String(block['type']);
    const upstreamIndex = Number(json['index']);
    const signature = type === 'thinking' && typeof block['signature'] === 'string' ? block['signature'] : '';
    this.#open = { upstreamIndex, index: this.#blocks++, type, signature, signatureText: undefined };
    this.#repeated.forget();
    const path = ['content_block'];
    const edits = [...this.#indexEdits(), ...completeBlock(block, path), ...dataEdits(block, path, this.#context)];
    if (signature !== '') edits.push({ path: [...path, 'signature'], value: '""' });
    out.push(this.#frame(native, edits));
  }

  #delta(native: Native, json: JsonObject, out: OutFrame[]): void {
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

  #closeSignature(out: OutFrame[]): void {
    const open = this.#open;
    if (open === undefined || open.signature === '') return;
    const sealed = this.#context.seal(signatureOpaque(this.#context.owner, open.signature));
    const text = open.signatureText ?? signatureDelta(open.upstreamIndex, '');
    const edits = [...this.#indexEdits(), { path: ['delta', 'signature'], value: JSON.stringify(sealed) }];
    out.push({ event: 'content_block_delta', data: editJson(text, edits) });
  }

  #indexEdits(): JsonEdit[] {
    const open = this.#open;
    return open === undefined || open.upstreamIndex === open.index ? [] : [{ path: ['index'], value: String(open.index) }];
  }
}

function signatureDelta(index: number, signature: string): string {
  return JSON.stringify({ type: 'content_block_delta', index, delta: { type: 'signature_delta', signature } });
}

/** The edits of a whole message, or of the message of message_start. */
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

/** For a whole block. In a stream the signature is sealed when the block stops. */
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

/** The error object of an error event in this dialect's form. */
function nativeError(json: JsonObject): JsonObject | undefined {
  const { type, error } = json;
  return type === 'error' && isObject(error) && typeof error['type'] === 'string' ? error : undefined;
}

/** Clients get only the type, a sanitised message and known codes of an upstream's error; other members may name accounts. */
function errorEdits(json: JsonObject, given: JsonObject, failure: GatewayError): JsonEdit[] {
  const edits: JsonEdit[] = Object.keys(json)
    .filter((key) => key !== 'type' && key !== 'error')
    .map((key) => ({ path: [key], value: undefined }));
  const codes = codesOf(given, failure);
  for (const key of Object.keys(given)) {
    const code = codes[key];
    if (key !== 'type' && key !== 'message')
      edits.push({ path: ['error', key], value: code === undefined ? undefined : JSON.stringify(code) });
  }
  edits.push({ path: ['error', 'message'], value: JSON.stringify(failure.message) });
  if (GATEWAY_ERRORS.has(String(given['type']))) edits.push({ path: ['error', 'type'], value: '"api_error"' });
  return edits;
}
