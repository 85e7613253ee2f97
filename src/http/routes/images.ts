/** The image endpoints: one pipeline, two operations. */
import type { Handler } from '../gateway.ts';
import { serveImages } from '../images/serve-images.ts';

export const imageGenerations: Handler = (call) => serveImages(call, 'generation');
export const imageEdits: Handler = (call) => serveImages(call, 'edit');
