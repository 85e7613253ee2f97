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
import { encodeConversation } from './encode-contents.ts';
import { encodeGenerationConfig } from './encode-config.ts';
import { requestLosses } from '../losses.ts';
import { encodeTools, NAME_RULE } from './encode-tools.ts';
import { writeJson } from '../wire.ts';

/** The specification's limit. */
const MOST_STOPS = 5;

export function encodeRequest(asked: CanonicalRequest, target: Target): UpstreamRequest {
  refuseForeignBinding(asked, 'gemini');
  const losses = new Losses(requestLosses);
  const request = withDirectTools(
    withoutLosses(asked, losses, (opaque) => mayReplay(opaque, target, 'gemini')),
    losses,
  );
  const toolNames = nameAllTools(request, NAME_RULE);
  const { systemInstruction, contents } = encodeConversation(request, target, toolNames, losses);
  const { tools, toolConfig } = encodeTools(request, toolNames, target.options, losses);
  const stops = splitStops(request.stop, MOST_STOPS);
  const generationConfig = encodeGenerationConfig(request, target.facts, stops, losses);
  return {
    path: pathOf(target.owner.model, request.stream),
    body: writeJson({ contents, systemInstruction, tools, toolConfig, generationConfig }),
    headers: {},
    toolNames,
    ...ownStops(stops),
    losses: losses.names,
  };
}

const RESOURCES = new Set(['models', 'tunedModels', 'publishers', 'projects', 'endpoints']);

/** A bare name is a model; a resource name (`tunedModels/x`, `publishers/google/models/x`) is its own path. */
function pathOf(model: string, stream: boolean): string {
  const segments = model.split('/');
  const isResource = segments.length > 1 && RESOURCES.has(segments[0] ?? '') && segments.every((segment) => /[^.]/.test(segment));
  const resource = isResource ? segments.map(encodeURIComponent).join('/') : `models/${encodeURIComponent(model)}`;
  return stream ? `/${resource}:streamGenerateContent?alt=sse` : `/${resource}:generateContent`;
}
