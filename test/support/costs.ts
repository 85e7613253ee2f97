/**
 * Processor time by test, for `npm test -- --slowest`. Loaded ahead of the tests (`--import`), it writes what each test took, of
 * all threads of its process, into the file that `MIZU_COSTS` names. Processor time says the same on a busy machine.
 */
import { appendFileSync } from 'node:fs';
import { relative } from 'node:path';
import { afterEach, beforeEach, type TestContext } from 'node:test';

/** What a test cost, those inside it included; milliseconds. */
export interface Cost {
  readonly file: string;
  readonly name: string;
  readonly ms: number;
}

/** Of the tests that are open, outermost first. */
const began: NodeJS.CpuUsage[] = [];
beforeEach(() => void began.push(process.cpuUsage()));
afterEach((context) => {
  const { user, system } = process.cpuUsage(began.pop());
  if (began.length > 0) return;
  const { filePath: file = '', name } = context as TestContext;
  const cost: Cost = { file: relative(process.cwd(), file), name, ms: (user + system) / 1_000 };
  appendFileSync(process.env['MIZU_COSTS'] ?? '/dev/null', `${JSON.stringify(cost)}\n`);
});
