/**
 * The reporter of the test command: prints each failure with the names of the tests around it, and nothing else. The summary is
 * the test command's own (`run.ts`). In the file that `MIZU_UNDER_WAY` names stands the test that runs, at once: whoever finds
 * the process dead reads it there.
 */
import { writeFileSync } from 'node:fs';
import { relative } from 'node:path';
import { inspect } from 'node:util';
import type { EventData } from 'node:test';

type TestEvent =
  | { readonly type: 'test:fail'; readonly data: EventData.TestFail }
  | { readonly type: 'test:start'; readonly data: EventData.TestStart }
  | { readonly type: 'test:dequeue'; readonly data: EventData.TestDequeue }
  | { readonly type: string; readonly data: unknown };

// biome-ignore lint/style/noDefaultExport: Node takes the default export of a reporter's file.
export default async function* failures(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  /** Names of the tests that are open, outermost first: a failure is named with all of them. */
  const open: string[] = [];
  const underWay = process.env['MIZU_UNDER_WAY'];
  for await (const event of events) {
    if (isDequeue(event)) {
      if (underWay !== undefined) writeFileSync(underWay, event.data.name);
    } else if (isStart(event)) {
      open.length = event.data.nesting;
      open.push(event.data.name);
    } else if (isFail(event)) {
      open.length = event.data.nesting;
      const text = failureText(event.data, [...open, event.data.name]);
      if (text !== undefined) yield text;
    }
  }
}

const isStart = (event: TestEvent): event is TestEvent & { readonly type: 'test:start'; readonly data: EventData.TestStart } =>
  event.type === 'test:start';
/** It comes before the test runs; `test:start` waits for the tests that were declared before it. */
const isDequeue = (
  event: TestEvent,
): event is TestEvent & { readonly type: 'test:dequeue'; readonly data: EventData.TestDequeue } => event.type === 'test:dequeue';
const isFail = (event: TestEvent): event is TestEvent & { readonly type: 'test:fail'; readonly data: EventData.TestFail } =>
  event.type === 'test:fail';

/** Undefined for a test that only failed because one inside it did: that one has been printed. */
function failureText({ details, file, line, todo }: EventData.TestFail, names: readonly string[]): string | undefined {
  const { error } = details;
  if ('failureType' in error && error.failureType === 'subtestsFailed') return undefined;
  const place = file === undefined ? '' : ` (${relative(process.cwd(), file)}${line === undefined ? '' : `:${line}`})`;
  const cause = error.cause ?? error;
  const told = cause instanceof Error && cause.stack !== undefined ? inspect(cause, { depth: 6 }) : inspect(cause);
  return `✖ ${names.join(' > ')}${place}${todo === undefined ? '' : ' # TODO'}\n${told.replace(/^/gm, '  ')}\n\n`;
}
