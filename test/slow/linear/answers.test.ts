/** The linearity law over every answer: see test/codecs/linear.test.ts. */
import { test } from 'node:test';
import { ANSWER_CASES } from '../../support/linear/answers.ts';
import { assertLinear } from '../../support/linear/growth.ts';

for (const one of ANSWER_CASES) test(`linear: ${one.name}`, () => assertLinear(one));
