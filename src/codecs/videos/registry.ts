/** Which video codec a Channel speaks. */
import type { ChannelType } from '../canonical/dialect.ts';
import { arkVideo } from './ark.ts';
import { minimaxVideoV1 } from './minimax-v1.ts';
import { minimaxVideoV2 } from './minimax-v2.ts';
import type { VideoUpstream } from './upstream.ts';

/** Undefined for a Channel type that makes no videos. */
export function videoUpstream(type: ChannelType, apiVersion: 'v1' | 'v2'): VideoUpstream | undefined {
  switch (type) {
    case 'ark_video':
      return arkVideo;
    case 'minimax_video':
      return apiVersion === 'v1' ? minimaxVideoV1 : minimaxVideoV2;
    default:
      return undefined;
  }
}
