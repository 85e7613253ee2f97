/**
 * What an image request may cost before it is sent, and what it did cost: by token, by piece, or both, as the model is priced.
 */
import { totalInput, type Usage } from '../../codecs/canonical/usage.ts';
import type { ImageAnswer, ImageRequest } from '../../codecs/images/index.ts';
import type { Rates, TokenClass } from '../../store/prices.ts';
import type { Estimate } from '../exchange/admit.ts';

const CHARS_A_TOKEN = 4;
/** A given image at the usual detail, and a drawn one of about a megapixel at medium quality: figures that vendors publish. */
const GIVEN_IMAGE_TOKENS = 1_000;
const DRAWN_IMAGE_TOKENS = 1_056;

/** For one picture. */
export function estimateImage(request: ImageRequest): Estimate {
  return { input: inputTokens(request), output: 0, imageOutput: DRAWN_IMAGE_TOKENS };
}

/**
 * Each picture that came back counts once, whatever was asked for (known failure I7). What the upstream leaves out of its report
 * is counted and flagged (U3), an input or output of nothing too: no prompt and no picture has no tokens.
 */
export function imageUsage(request: ImageRequest, answer: ImageAnswer, rates: Rates): Usage {
  const images = answer.images.length;
  const reported: Usage = answer.usage?.billed ?? {};
  // A model that has a price for each picture needs no count of the tokens that it has no price for.
  const isByToken = (own: TokenClass, instead: TokenClass): boolean =>
    !rates.pieces.has('image') || (rates.tokens.get(own) ?? rates.tokens.get(instead) ?? 0n) > 0n;
  const missing = {
    ...(totalInput(reported) > 0 || !isByToken('input', 'image_input') ? {} : givenTokens(request)),
    ...(reported.output || !isByToken('image_output', 'output') ? {} : drawnTokens(images)),
  };
  const isWhole = Object.keys(missing).length === 0;
  return { ...reported, ...missing, images, ...(isWhole ? {} : { estimated: true }) };
}

function givenTokens(request: ImageRequest): Usage {
  return { input: inputTokens(request), imageInput: GIVEN_IMAGE_TOKENS * request.images.length };
}

function drawnTokens(images: number): Usage {
  const output = DRAWN_IMAGE_TOKENS * images;
  return { output, imageOutput: output };
}

function inputTokens(request: ImageRequest): number {
  return Math.ceil(request.prompt.length / CHARS_A_TOKEN) + GIVEN_IMAGE_TOKENS * request.images.length;
}
