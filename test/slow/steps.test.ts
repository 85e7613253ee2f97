/** The longest step of every request at the limits that are there by default: see test/support/linear/steps.ts. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PLAIN } from '../support/linear/growth.ts';
import { LARGEST_REQUESTS } from '../support/linear/steps.ts';

/** Measured again before it fails: collections count, too. */
const TRIES = 4;
/** What the engine takes to parse the plain body of the linearity law is a little more than a millisecond. */
const PLAIN_MS = 1.2;
/**
 * With the five milliseconds of a turn that may go before it: fifty, and half as much again, since how slow a machine is differs
 * from one moment to the next.
 */
const STEP_MS = 70;
/**
 * Of an object with more than 100,000 members, whose names the engine lists in one go, and of deep schemas with as many
 * (docs/threat-model.md).
 */
const WIDE_MS = 150;
/** Of such an object within a deep schema, each level of which is referred to. */
const REFERRED_MS = 400;
const isWide = (name: string): boolean =>
  /(tool|format): properties( that look like numbers)?$|members that nobody knows$|within allOf(, all at the bottom)?$|several types within each other$/.test(
    name,
  );

function boundOf(name: string): number {
  if (name.endsWith('references to each level of a deep schema')) return REFERRED_MS;
  return isWide(name) ? WIDE_MS : STEP_MS;
}

/** How many times slower than an idle machine this one is now. */
function slowness(): number {
  // The kernel counts in ticks of some milliseconds.
  const runs = 30;
  const before = process.threadCpuUsage();
  for (let run = 0; run < runs; run++) JSON.parse(PLAIN);
  const { user, system } = process.threadCpuUsage(before);
  return Math.max(1, (user + system) / 1000 / runs / PLAIN_MS);
}

for (const { name, longestStep } of LARGEST_REQUESTS) {
  test(`steps: ${name}`, () => {
    let least = Number.POSITIVE_INFINITY;
    let most = 0;
    for (let tried = 0; tried < TRIES && least >= most; tried++) {
      most = boundOf(name) * slowness();
      least = Math.min(least, longestStep());
    }
    assert.ok(least <= most, `a step took ${least.toFixed(1)} ms, and this machine may take ${most.toFixed(1)}`);
  });
}
