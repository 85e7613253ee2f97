/** The linearity law over what a gateway is asked: see test/http/linear.test.ts. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { HTTP_CASES } from '../../support/linear/http-cases.ts';
import { assertLinear } from '../../support/linear/growth.ts';
import { OWN_SIZES } from '../../support/linear/planted.ts';

for (const one of HTTP_CASES) test(`linear: ${one.name}`, () => assertLinear(one));

for (const one of OWN_SIZES)
  test(`the law finds ${one.name}`, () => assert.rejects(assertLinear(one, undefined, 1), /times as much took/));
