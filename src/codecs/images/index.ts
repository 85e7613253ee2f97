/** Images: what clients ask and read, and the three kinds of upstreams that draw. */
import type { ChannelType } from '../canonical/dialect.ts';
import { nativeImages } from './native-upstream.ts';
import { routerImages } from './router-upstream.ts';
import { toolImages } from './tool-upstream.ts';
import type { ImageUpstream } from './upstream.ts';

export type { ImageAnswer, ImageUsage } from './answer.ts';
export { joinAnswers } from './answer.ts';
export { DONE, encodeImageAnswer, encodeImageAnswerInSteps, encodeImageEvents, encodeImageFailure } from './client.ts';
export { decodeModelList, ROUTER_MODELS_PATH } from './model-list.ts';
export { readImageForm } from './read-form.ts';
export { readImageJson } from './read-json.ts';
export type { ImageOperation, ImageRequest } from './request.ts';
export { firstReference } from './request.ts';
export type { ImageUpstream, ImageUpstreamRequest } from './upstream.ts';
export { rejectsStreaming } from './upstream.ts';
export type { UntilAnswer } from './until-answer.ts';

export const IMAGE_UPSTREAMS: ReadonlyMap<ChannelType, ImageUpstream> = new Map(
  [nativeImages, routerImages, toolImages].map((upstream) => [upstream.channelType, upstream]),
);
