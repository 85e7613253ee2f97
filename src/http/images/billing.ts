/** What an image request may cost before it is sent, and what it did cost: by token, by piece, or both, as the model is priced. */
import type { Usage } from '../../codecs/canonical/usage.ts';
import type { ImageAnswer, ImageRequest } from '../../codecs/images/index.ts';
import type { Rates } from '../../store/prices.ts';
import type { Estimate } from '../admit.ts';

const CHARS_A_TOKEN = 4;
/** A given image at the usual detail, and a drawn one of about a megapixel at medium quality: figures that vendors publish. */
const GIVEN_IMAGE_TOKENS = 1_000;
const DRAWN_IMAGE_TOKENS = 1_056;

/** For one picture. */
export function estimateImage(request: ImageRequest): Estimate {
  return { input: inputTokens(request), output: 0, imageOutput: DRAWN_IMAGE_TOKENS };
}

/** Each picture that came back counts once, whatever was asked for (known failure I7). Without a report, tokens are counted and flagged. */
export function imageUsage(request: ImageRequest, answer: ImageAnswer, rates: Rates): Usage {
  const images = answer.images.length;
  if (answer.usage !== undefined) return { ...answer.usage.billed, images };
  // A model that is priced by the piece alone needs no count of tokens.
  if (rates.pieces.has('image')) return { images };
  const output = DRAWN_IMAGE_TOKENS * images;
  const given = GIVEN_IMAGE_TOKENS * request.images.length;
  return { input: inputTokens(request), imageInput: given, output, imageOutput: output, images, estimated: true };
}

function inputTokens(request: ImageRequest): number {
  return Math.ceil(request.prompt.length / CHARS_A_TOKEN) + GIVEN_IMAGE_TOKENS * request.images.length;
}
