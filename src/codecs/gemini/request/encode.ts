/** A canonical request as a call of `generateContent` or `streamGenerateContent`. The model is in the path, not in the body. */
import type { CanonicalRequest } from '../../canonical/request.ts';
import type { Target, UpstreamRequest } from '../../codec.ts';
import { refuseForeignBinding } from '../../requests/foreign-content.ts';
import { Losses } from '../../requests/losses.ts';
import { mayReplay } from '../../requests/opaque-replay.ts';
import { withoutLosses } from '../../requests/without-losses.ts';
import { ownStops, splitStops } from '../../requests/stop-sequences.ts';
import { withDirectTools } from '../../tools/function-members.ts';
import { nameAllTools } from '../../tools/names.ts';
import { isLong, writeInSteps } from '../../json/write-in-steps.ts';
import { endsStep, type Steps } from '../../steps.ts';
import { encodeConversation } from './encode-contents.ts';
import { encodeGenerationConfig } from './encode-config.ts';
import { requestLosses } from '../losses.ts';
import { encodeTools, NAME_RULE } from './encode-tools.ts';
import { type Content, type Part, RawJson, writeJson } from '../wire.ts';

/** The specification's limit. */
const MOST_STOPS = 5;

export function* encodeInSteps(asked: CanonicalRequest, target: Target): Steps<UpstreamRequest> {
  refuseForeignBinding(asked, 'gemini');
  const losses = new Losses(requestLosses);
  const request = withDirectTools(
    withoutLosses(asked, losses, (opaque) => mayReplay(opaque, target, 'gemini')),
    losses,
  );
  yield;
  const toolNames = yield* nameAllTools(request, NAME_RULE);
  yield;
  const { systemInstruction, contents } = yield* encodeConversation(request, target, toolNames, losses);
  const { tools, toolConfig } = yield* encodeTools(request, toolNames, target.options, losses);
  const stops = splitStops(request.stop, MOST_STOPS);
  const generationConfig = yield* encodeGenerationConfig(request, target.facts, stops, losses);
  yield;
  return {
    path: pathOf(target.owner.model, request.stream),
    body: yield* writeBody(contents, { systemInstruction, tools, toolConfig, generationConfig }),
    headers: {},
    toolNames,
    ...ownStops(stops),
    losses: losses.names,
  };
}

/** Only contents hold texts of the client's own. */
function* writeBody(contents: readonly Content[], rest: Readonly<Record<string, unknown>>): Steps<string> {
  const written: string[] = [];
  for (const [index, content] of contents.entries()) {
    if (endsStep(index)) yield;
    written.push(yield* writeContent(content));
  }
  const members = [`"contents":[${written.join(',')}]`];
  for (const [name, value] of Object.entries(rest)) {
    yield;
    if (value !== undefined) members.push(`"${name}":${yield* writeInSteps(value as object)}`);
  }
  return `{${members.join(',')}}`;
}

function* writeContent({ role, parts }: Content): Steps<string> {
  const written: string[] = [];
  for (const [index, part] of parts.entries()) {
    if (endsStep(index)) yield;
    written.push(writeJson(yield* withLongText(part)));
  }
  return `{"role":${JSON.stringify(role)},"parts":[${written.join(',')}]}`;
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
