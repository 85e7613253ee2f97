/** A canonical request as a call of `generateContent` or `streamGenerateContent`. The model is in the path, not in the body. */
import type { CanonicalRequest } from '../../canonical/request.ts';
import type { Target, UpstreamRequest } from '../../codec.ts';
import { refuseForeignBinding } from '../../requests/foreign-content.ts';
import { type FeatureMember, noteMembers } from '../../requests/member-losses.ts';
import { ownStops, splitStops } from '../../requests/stop-sequences.ts';
import { withDirectTools } from '../../tools/function-members.ts';
import { nameAllTools } from '../../tools/names.ts';
import { hasUnreadMembers } from '../../requests/unread-members.ts';
import { encodeConversation } from './encode-contents.ts';
import { encodeGenerationConfig } from './encode-config.ts';
import { LossLog } from '../losses.ts';
import { encodeTools, NAME_RULE } from './encode-tools.ts';
import { writeJson } from '../wire.ts';

/** The specification's limit. */
const MOST_STOPS = 5;

export function encodeRequest(asked: CanonicalRequest, target: Target): UpstreamRequest {
  refuseForeignBinding(asked, 'gemini');
  const log = new LossLog();
  const request = withDirectTools(asked, (feature) => log.note(feature));
  const toolNames = nameAllTools(request, NAME_RULE);
  const { systemInstruction, contents } = encodeConversation(request, target, toolNames, log);
  const { tools, toolConfig } = encodeTools(request, toolNames, target.options, log);
  const stops = splitStops(request.stop, MOST_STOPS);
  const generationConfig = encodeGenerationConfig(request, target.facts, stops, log);
  noteLeftOut(request, log);
  return {
    path: pathOf(target.owner.model, request.stream),
    body: writeJson({ contents, systemInstruction, tools, toolConfig, generationConfig }),
    headers: {},
    toolNames,
    ...ownStops(stops),
    losses: log.names,
  };
}

/** Members that the protocol has no place for. */
const LEFT_OUT: readonly FeatureMember[] = [
  'user',
  'metadata',
  'serviceTier',
  'promptCacheKey',
  'safetyIdentifier',
  'store',
  'include',
  'cache',
  'fallbacks',
];

function noteLeftOut(request: CanonicalRequest, log: LossLog): void {
  noteMembers(request, LEFT_OUT, (feature) => log.note(feature));
  if (hasUnreadMembers(request)) log.note('unknown members');
}

const RESOURCES = new Set(['models', 'tunedModels', 'publishers', 'projects', 'endpoints']);

/** A bare name is a model; a resource name (`tunedModels/x`, `publishers/google/models/x`) is its own path. */
function pathOf(model: string, stream: boolean): string {
  const segments = model.split('/');
  const isResource = segments.length > 1 && RESOURCES.has(segments[0] ?? '') && segments.every((segment) => /[^.]/.test(segment));
  const resource = isResource ? segments.map(encodeURIComponent).join('/') : `models/${encodeURIComponent(model)}`;
  return stream ? `/${resource}:streamGenerateContent?alt=sse` : `/${resource}:generateContent`;
}
