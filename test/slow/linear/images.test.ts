/** The linearity law over pictures and vectors, asked for and answered: see test/codecs/linear.test.ts. */
import { test } from 'node:test';
import { assertLinear } from '../../support/linear/growth.ts';
import { IMAGE_ANSWER_CASES } from '../../support/linear/image-answers.ts';
import { IMAGE_REQUEST_CASES } from '../../support/linear/image-requests.ts';

for (const one of [...IMAGE_REQUEST_CASES, ...IMAGE_ANSWER_CASES]) test(`linear: ${one.name}`, () => assertLinear(one));
