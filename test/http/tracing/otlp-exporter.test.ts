/** What a collector that is slow, or gone, costs: spans, told in few words, and no time of a gateway that ends. */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import { createOtlpExporter } from '../../../src/http/tracing/otlp-exporter.ts';
import type { Span } from '../../../src/http/tracing/span.ts';
import { createFakeClock } from '../../support/fake-clock.ts';

const SPAN: Span = {
  traceId: '1'.repeat(32),
  spanId: '2'.repeat(16),
  name: 'chat m',
  kind: 'client',
  startMs: 0,
  endMs: 1,
  attributes: {},
};

/** A collector that answers so; without a status it never does. */
async function setUp(t: TestContext, status?: number) {
  let asked = 0;
  const lost: number[] = [];
  const server = createServer((request, response) => {
    asked += 1;
    request.resume();
    if (status !== undefined) request.on('end', () => response.writeHead(status).end());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  const { port } = server.address() as AddressInfo;
  const exporter = createOtlpExporter({
    endpoint: `http://127.0.0.1:${port}`,
    headers: {},
    resource: {},
    clock: createFakeClock(),
    onLost: (count) => lost.push(count),
  });
  const add = (count: number): void => {
    for (let span = 0; span < count; span++) exporter.add(SPAN);
  };
  return { exporter, add, lost, asked: () => asked, closeAll: () => server.closeAllConnections() };
}

test('spans that found no room are told together, when it is known what became of those before them', async (t) => {
  const { exporter, add, lost, closeAll } = await setUp(t);
  add(10_000);
  assert.deepEqual(lost, [], 'not a line for each');
  setTimeout(closeAll, 50);
  await exporter.close();
  assert.equal(
    lost.reduce((sum, count) => sum + count, 0),
    10_000,
  );
  assert.ok(lost.length < 5, `told ${lost.length} times`);
});

test('a gateway that ends asks a collector that failed once no more', async (t) => {
  const { exporter, add, lost, asked } = await setUp(t, 503);
  add(2_000);
  await exporter.close();
  assert.equal(asked(), 1);
  assert.equal(
    lost.reduce((sum, count) => sum + count, 0),
    2_000,
  );
});

test('a gateway that ends sends everything to a collector that takes it', async (t) => {
  const { exporter, add, lost, asked } = await setUp(t, 200);
  add(2_000);
  await exporter.close();
  assert.equal(asked(), 4);
  assert.deepEqual(lost, []);
});

test('any answer but a good one costs the spans: a redirect is followed nowhere', async (t) => {
  for (const [status, expected] of [
    [200, []],
    [202, []],
    [307, [3]],
    [503, [3]],
  ] as const) {
    const { exporter, add, lost } = await setUp(t, status);
    add(3);
    await exporter.close();
    assert.deepEqual(lost, expected, String(status));
  }
});
