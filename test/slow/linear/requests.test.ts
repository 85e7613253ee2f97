/** The linearity law over every request: see test/codecs/linear.test.ts. */
import { test } from 'node:test';
import { REQUEST_CASES } from '../../support/linear/requests.ts';
import { assertAffordable, assertLinear } from '../../support/linear/growth.ts';

for (const one of REQUEST_CASES) test(`linear: ${one.name}`, () => assertLinear(one));
for (const one of REQUEST_CASES) test(`affordable: ${one.name}`, () => assertAffordable(one));
