/** A reporter of node:test that writes one JSON line a finished test: what `ledger.ts` reads after a run. */
import type { TestEvent } from 'node:test/reporters';

export default async function* ledgerReporter(source: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  for await (const event of source) {
    if (event.type !== 'test:pass' && event.type !== 'test:fail') continue;
    const { name: title, skip } = event.data;
    yield `${JSON.stringify({ title, passed: event.type === 'test:pass', skipped: skip !== undefined && skip !== false })}\n`;
  }
}
