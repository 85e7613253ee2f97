/**
 * A reporter that ends the process with the first test that failed, whose title it prints, or else prints the processor's time in
 * milliseconds.
 */
import { writeSync } from 'node:fs';
import type { TestEvent } from 'node:test/reporters';

// biome-ignore lint/style/noDefaultExport: the test runner takes a reporter by this name.
// biome-ignore lint/correctness/useYield: it prints once, at once.
export default async function* firstFailure(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  for await (const { type, data } of events) {
    if (type !== 'test:fail' || data.todo !== undefined) continue;
    writeSync(1, data.name);
    process.exit(1);
  }
  const { user, system } = process.cpuUsage();
  writeSync(1, String(Math.round((user + system) / 1000)));
}
