/** The `content` array that Ark and MiniMax v2 share: one text, then the inputs in the client's order. */
import type { JsonObject } from '../canonical/json.ts';
import type { VideoInput, VideoRequest } from './request.ts';

export function contentOf(request: VideoRequest): JsonObject[] {
  const content: JsonObject[] = [];
  if (request.prompt !== undefined && request.prompt !== '') content.push({ type: 'text', text: request.prompt });
  for (const input of request.input) content.push(partOf(input));
  return content;
}

function partOf({ type, url, role }: VideoInput): JsonObject {
  switch (type) {
    case 'image':
      return { type: 'image_url', image_url: { url }, ...(role === undefined ? {} : { role }) };
    case 'video':
      return { type: 'video_url', video_url: { url }, role: role ?? 'reference_video' };
    case 'audio':
      return { type: 'audio_url', audio_url: { url }, role: role ?? 'reference_audio' };
  }
}
