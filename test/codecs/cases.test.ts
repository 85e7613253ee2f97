/** Every document of cases, on the one runner. */
import { isObject, parseJson } from '../../src/codecs/canonical/json.ts';
import { type CaseDocument, runCases } from '../support/cases.ts';
import { bedrock, chat, gemini, messages, responses } from '../support/dialects.ts';

const at = (path: string): URL => new URL(path, import.meta.url);
const asIs = (line: string): string => line;

/** How streams of the responses documents begin, where they write `…`; and what its client reads. */
const CREATED =
  '{"type":"response.created","sequence_number":0,"response":{"id":"r","model":"m","status":"in_progress","output":[]}}';
const READ = CREATED.replace('"r"', '"R"').replace('"m"', '"M"');

const RESPONSES = ['decode', 'splice', 'repair-indices', 'backfill'].map(
  (name): CaseDocument => ({
    url: at(`responses/answer/${name}.cases.md`),
    upstream: responses,
    payload: (line) => (line === '…' ? CREATED : line),
    shown: (line) => (line === '…' ? READ : line),
  }),
);

const DOCUMENTS: readonly CaseDocument[] = [
  { url: at('chat/answer/decode.cases.md'), upstream: chat, payload: chatChunk },
  { url: at('messages/answer/decode.cases.md'), upstream: messages, payload: asIs },
  { url: at('messages/answer/decode.cases.md'), upstream: bedrock, payload: asIs },
  { url: at('gemini/answer/decode.cases.md'), upstream: gemini, payload: geminiChunk },
  ...RESPONSES,
];

for (const document of DOCUMENTS) runCases(document);

function chatChunk(line: string): string {
  const json = parsed(line);
  if (!isObject(json) || json['code'] !== undefined) return line;
  if (json['choices'] !== undefined || json['error'] !== undefined)
    return JSON.stringify({ id: 'up-1', created: 1, model: 'up', ...json });
  const { finish, ...delta } = json;
  const choice = { index: 0, delta, finish_reason: typeof finish === 'string' ? finish : null };
  return JSON.stringify({ id: 'up-1', object: 'chat.completion.chunk', created: 1, model: 'up-model', choices: [choice] });
}

function geminiChunk(line: string): string {
  const [, parts, finishReason] = /^(\[.*\])(?: ([A-Z_]+))?$/.exec(line) ?? [];
  if (parts === undefined) return line;
  return JSON.stringify({ candidates: [{ content: { role: 'model', parts: JSON.parse(parts) }, finishReason }] });
}

/** Undefined where a case sends what is no JSON. */
function parsed(line: string): unknown {
  try {
    return parseJson(line);
  } catch {
    return undefined;
  }
}
