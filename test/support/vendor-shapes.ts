/** What clients of each dialect read, against the types of its vendor's own SDKs. */
import assert from 'node:assert/strict';
import { misfits, type VendorFile, type VendorTypes } from './vendor-types.ts';

/** The types of an event and of a body: those of the API as it is, and those of its betas. */
const TYPES: Readonly<Record<string, readonly (readonly [VendorFile, string, string])[]>> = {
  chat: [['chat', 'ChatCompletionChunk', 'ChatCompletion']],
  completions: [['completions', 'Completion', 'Completion']],
  responses: [['responses', 'ResponseStreamEvent', 'Response']],
  messages: [
    ['messages', 'RawMessageStreamEvent', 'Message'],
    ['betaMessages', 'BetaRawMessageStreamEvent', 'BetaMessage'],
  ],
};

/** Where the types ask for more than the vendor's own servers send, and why. */
const EXCEPTIONS: readonly { readonly in: VendorFile; readonly what: RegExp; readonly why: string }[] = [
  { in: 'responses', what: /\.output_text: is missing$/, why: 'the SDK adds it to what it reads' },
  {
    in: 'responses',
    what: /^(\.response)?\.usage: null /,
    why: 'the vendor sends null until it has counted, and Open Responses requires the member',
  },
  {
    in: 'responses',
    what: /^\.response\.error\.code: "upstream_error" /,
    why: 'the vendor lists codes of its own failures; the gateway has one for those of its upstreams, and clients read any',
  },
  { in: 'completions', what: /\.finish_reason: null /, why: 'the vendor sends null in every chunk but the last' },
  {
    in: 'completions',
    what: /^\.usage: null /,
    why: 'the vendor sends null in every chunk but the last, where usage is asked for',
  },
  {
    in: 'betaMessages',
    what: /\.(context_management|iterations|fallback_credit|estimated_tokens): is missing$/,
    why: 'sent where a request turned on the beta that they belong to',
  },
];

function unexplained(wrong: readonly string[], file: VendorFile): string[] {
  return wrong.filter((one) => !EXCEPTIONS.some(({ in: where, what }) => where === file && what.test(one)));
}

/**
 * Asserts that an event or a body is one that the SDKs of this client dialect declare. `isOwn`: an upstream of the same dialect
 * said it, and what it left out or says with null stays so.
 */
export function checkShape(types: VendorTypes, dialect: string, value: unknown, form: 'event' | 'body', isOwn = false): void {
  for (const [file, event, body] of TYPES[dialect] ?? []) {
    const shape = types.shape(file, form === 'event' ? event : body);
    const wrong = unexplained(misfits(value, shape), file).filter((one) => !isOwn || !/: (is missing$|null is )/.test(one));
    assert.deepEqual(wrong, [], `${file}: ${JSON.stringify(value).slice(0, 600)}`);
  }
}
