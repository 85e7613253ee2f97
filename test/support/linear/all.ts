/** Every case of the linearity law over codecs, by name. Those over what is asked of a gateway: `http-cases.ts`. */
import { ANSWER_CASES } from './answers.ts';
import type { Case } from './growth.ts';
import { IMAGE_ANSWER_CASES } from './image-answers.ts';
import { IMAGE_REQUEST_CASES } from './image-requests.ts';
import { REQUEST_CASES } from './requests.ts';

export const LINEAR_CASES: readonly Case[] = [...REQUEST_CASES, ...ANSWER_CASES, ...IMAGE_REQUEST_CASES, ...IMAGE_ANSWER_CASES];
