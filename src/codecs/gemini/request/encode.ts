/** A canonical request as a call of `generateContent` or `streamGenerateContent`. The model is in the path, not in the body. */
import { joinTexts } from '../../join-texts.ts';
import type { CanonicalRequest } from '../../canonical/request.ts';
import { type EncodeContext, requestEncoder } from '../../requests/request-encoder.ts';
import { formatInstruction } from '../../requests/format-instruction.ts';
import { schemaTexts } from '../../schemas/text.ts';
import { isLong, writeInSteps } from '../../json/write-in-steps.ts';
import { endsStep, type Steps } from '../../steps.ts';
import { encodeConversation } from './encode-contents.ts';
import { encodeGenerationConfig } from './encode-config.ts';
import { requestLosses } from '../losses.ts';
import { encodeTools, NAME_RULE } from './encode-tools.ts';
import { type Content, type Part, RawJson, writeJson } from '../wire.ts';

export const encodeInSteps = requestEncoder({
  dialect: 'gemini',
  losses: requestLosses,
  nameRule: NAME_RULE,
  // The specification's limit.
  mostStops: 5,
  path: ({ stream }, { owner }) => pathOf(owner.model, stream),
  write: writeBody,
});

function* writeBody(request: CanonicalRequest, context: EncodeContext): Steps<string> {
  const { systemInstruction, contents } = yield* encodeConversation(request, context);
  const { tools, toolConfig } = yield* encodeTools(request, context);
  const instruction = tools === undefined ? undefined : yield* formatBesideTools(request, context);
  const asked = instruction === undefined ? request : { ...request, format: { type: 'text' as const } };
  const generationConfig = yield* encodeGenerationConfig(asked, context);
  yield;
  const system =
    instruction === undefined ? systemInstruction : { parts: [...(systemInstruction?.parts ?? []), { text: instruction }] };
  return yield* writeMembers(contents, { systemInstruction: system, tools, toolConfig, generationConfig });
}

/** What the model is told of the format where it takes no format beside tools. */
function* formatBesideTools(request: CanonicalRequest, { target, losses }: EncodeContext): Steps<string | undefined> {
  const { format } = request;
  if (target.facts.noFormatBesideTools !== true || format === undefined || format.type === 'text') return undefined;
  const instruction = formatInstruction(format, (yield* schemaTexts(request)).format);
  losses.add(format.type === 'json_object' ? 'format: json object' : 'format: json schema');
  return instruction;
}

/** Only contents hold texts of the client's own. */
function* writeMembers(contents: readonly Content[], rest: Readonly<Record<string, unknown>>): Steps<string> {
  const written: string[] = [];
  for (const [index, content] of contents.entries()) {
    if (endsStep(index)) yield;
    written.push(yield* writeContent(content));
  }
  const members = [`"contents":[${joinTexts(written)}]`];
  for (const [name, value] of Object.entries(rest)) {
    yield;
    if (value !== undefined) members.push(`"${name}":${yield* writeInSteps(value as object)}`);
  }
  return `{${joinTexts(members)}}`;
}

function* writeContent({ role, parts }: Content): Steps<string> {
  const written: string[] = [];
  for (const [index, part] of parts.entries()) {
    if (endsStep(index)) yield;
    written.push(writeJson(yield* withLongText(part)));
  }
  return `{"role":${JSON.stringify(role)},"parts":[${joinTexts(written)}]}`;
}

/** A text of megabytes, said or as a result, is written in steps; the part around it is small. */
function* withLongText(part: Part): Steps<object> {
  const { text, functionResponse } = part;
  if (isLong(text)) return { ...part, text: new RawJson(yield* writeInSteps(text)) };
  for (const [name, said] of Object.entries(functionResponse?.response ?? {})) {
    if (!isLong(said)) continue;
    const response = { [name]: new RawJson(yield* writeInSteps(said)) };
    return { ...part, functionResponse: { ...functionResponse, response } };
  }
  return part;
}

const RESOURCES = new Set(['models', 'tunedModels', 'publishers', 'projects', 'endpoints']);

/** A bare name is a model; a resource name (`tunedModels/x`, `publishers/google/models/x`) is its own path. */
function pathOf(model: string, stream: boolean): string {
  const segments = model.split('/');
  const isResource = segments.length > 1 && RESOURCES.has(segments[0] ?? '') && segments.every((segment) => /[^.]/.test(segment));
  const resource = isResource ? segments.map(encodeURIComponent).join('/') : `models/${encodeURIComponent(model)}`;
  return stream ? `/${resource}:streamGenerateContent?alt=sse` : `/${resource}:generateContent`;
}
