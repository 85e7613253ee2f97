/** The ballast: bytes that are given up when the disk is full, and put back when there is room. */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, rmdirSync, statSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { FreeSpace } from '../../src/store/lmdb/free-space.ts';
import { tempDirectory } from './support/store.ts';

const BALLAST = 5_000;

function freeSpace(t: TestContext, freeSpaceFloor = 0) {
  const path = tempDirectory(t);
  const problems: string[] = [];
  const space = new FreeSpace({ path, freeSpaceFloor, ballastBytes: BALLAST, onProblem: ({ what }) => void problems.push(what) });
  return { space, ballast: join(path, 'ballast'), problems };
}

test('F31: the ballast is there as a whole after the first look, is given up once, and comes back', async (t) => {
  const { space, ballast } = freeSpace(t);
  await space.look();
  assert.deepEqual([statSync(ballast).size, space.low], [BALLAST, undefined]);
  truncateSync(ballast, 10);
  await space.look();
  assert.equal(statSync(ballast).size, BALLAST);
  space.giveUpBallast();
  assert.deepEqual([existsSync(ballast), space.low], [false, 'the disk is full']);
  await space.look();
  assert.deepEqual([statSync(ballast).size, space.low], [BALLAST, undefined]);
});

test('F31: below the floor there is no ballast', async (t) => {
  const { space, ballast } = freeSpace(t, Number.MAX_SAFE_INTEGER);
  await space.look();
  assert.match(space.low ?? '', /^\d+ bytes are free, the floor is \d+$/);
  assert.equal(existsSync(ballast), false);
});

test('F31: a ballast that cannot be written is told once, and tried again after sixty looks', async (t) => {
  const { space, ballast, problems } = freeSpace(t);
  mkdirSync(ballast);
  for (let look = 0; look < 130; look += 1) await space.look();
  assert.deepEqual(problems, ['ballast_not_written']);
  rmdirSync(ballast);
  await space.look();
  assert.equal(existsSync(ballast), false, 'not at every look');
  for (let look = 0; look < 60; look += 1) await space.look();
  assert.equal(statSync(ballast).size, BALLAST);
  space.giveUpBallast();
  mkdirSync(ballast);
  await space.look();
  assert.deepEqual(problems, ['ballast_not_written', 'ballast_not_written'], 'what was well between is told anew');
});
