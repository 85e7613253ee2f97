/**
 * Traces: off by default; on, a collector sees a server span and a client span for each attempt, and upstreams see the attempt's
 * context.
 */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import fc from 'fast-check';
import { readTraceContext, traceHeaders } from '../../../src/http/tracing/trace-context.ts';
import { fakeUpstream, jsonAnswer, sayMessages } from '../../support/fake-upstream.ts';
import { ask, channel, MODELS, testGateway } from '../../support/test-gateway.ts';

interface WireSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly kind: number;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: readonly { readonly key: string; readonly value: Record<string, string> }[];
  readonly status: { readonly code?: number };
}

interface Batch {
  readonly resourceSpans: readonly [
    {
      readonly resource: { readonly attributes: readonly { readonly key: string; readonly value: object }[] };
      readonly scopeSpans: readonly [{ readonly spans: readonly WireSpan[] }];
    },
  ];
}

async function collector(t: { after(fn: () => void): void }, status = 200) {
  const spans: WireSpan[] = [];
  const paths: string[] = [];
  const resources: unknown[] = [];
  const server = createServer(async (request, response) => {
    let text = '';
    for await (const chunk of request) text += String(chunk);
    paths.push(`${request.method} ${request.url} ${request.headers['x-team']}`);
    const batch: Batch = JSON.parse(text);
    resources.push(...batch.resourceSpans[0].resource.attributes);
    spans.push(...batch.resourceSpans[0].scopeSpans[0].spans);
    response.writeHead(status).end('{}');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, spans, paths, resources };
}

const attribute = (span: WireSpan | undefined, key: string): string | undefined =>
  Object.values(span?.attributes.find((member) => member.key === key)?.value ?? {})[0];

test('an exchange with one failed attempt: three spans of the client’s own trace', async (t) => {
  const { url, spans, paths } = await collector(t);
  const sick = await fakeUpstream(jsonAnswer(500, { type: 'error', error: { type: 'api_error', message: 'secret words' } }));
  const well = await fakeUpstream(sayMessages('secret answer'));
  t.after(() => Promise.all([sick.close(), well.close()]));
  {
    await using gateway = await testGateway({
      channels: [channel(sick.url, { id: 'sick' }), channel(well.url, { priority: 1, models: { m: 'm-2026' } })],
      models: MODELS,
      tracing: { endpoint: url, headers: { 'x-team': 'blue' } },
    });
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
    const headers = { traceparent, tracestate: 'a=1' };
    await (await gateway.post('/v1/messages', ask({ stream: true, system: 'secret prompt' }), { headers })).text();
  }
  assert.deepEqual(paths, ['POST /v1/traces blue']);
  const server = spans.find(({ kind }) => kind === 2);
  const [first, second] = spans.filter(({ kind }) => kind === 3);
  assert.equal(spans.length, 3);
  assert.equal(server?.parentSpanId, 'b7ad6b7169203331');
  assert.equal(server?.name, 'POST /v1/messages');
  assert.deepEqual([first?.parentSpanId, second?.parentSpanId], [server?.spanId, server?.spanId]);
  for (const { traceId } of spans) assert.equal(traceId, '0af7651916cd43dd8448eb211c80319c');
  assert.equal(sick.requests[0]?.headers.get('traceparent'), `00-${server?.traceId}-${first?.spanId}-01`);
  assert.equal(well.requests[0]?.headers.get('traceparent'), `00-${server?.traceId}-${second?.spanId}-01`);
  assert.equal(well.requests[0]?.headers.get('tracestate'), 'a=1');
  assert.equal(first?.status.code, 2);
  assert.equal(attribute(first, 'mizu.channel'), 'sick');
  assert.equal(second?.name, 'chat m-2026');
  assert.equal(second?.status.code, undefined);
  assert.equal(attribute(second, 'gen_ai.operation.name'), 'chat');
  assert.equal(attribute(second, 'gen_ai.provider.name'), 'anthropic');
  assert.equal(attribute(second, 'gen_ai.usage.input_tokens'), '7');
  assert.equal(attribute(second, 'gen_ai.usage.output_tokens'), '5');
  assert.ok(BigInt(server?.endTimeUnixNano ?? 0) >= BigInt(server?.startTimeUnixNano ?? 1));
  assert.doesNotMatch(JSON.stringify(spans), /secret/, 'names and counts, no content');
});

test('spans are of the service that the configuration names, and of the share of traces that it wants', async (t) => {
  const { url, spans, resources } = await collector(t);
  const well = await fakeUpstream(sayMessages('fine'));
  t.after(() => well.close());
  const traced = async (tracing: object): Promise<number> => {
    const before = spans.length;
    const file = { channels: [channel(well.url)], models: MODELS, tracing: { endpoint: url, ...tracing } };
    await using gateway = await testGateway(file);
    await (await gateway.post('/v1/messages', ask({ stream: true }))).text();
    await gateway.running.stop();
    return spans.length - before;
  };
  assert.equal(await traced({ service_name: 'mine' }), 2);
  assert.deepEqual(resources, [{ key: 'service.name', value: { stringValue: 'mine' } }]);
  assert.equal(await traced({ sample: 0 }), 0);
});

test('a compaction is traced like any other exchange', async (t) => {
  const { url, spans } = await collector(t);
  const well = await fakeUpstream(jsonAnswer(200, { object: 'response.compaction', output: [] }));
  t.after(() => well.close());
  {
    const channels = [channel(well.url, { type: 'responses' })];
    await using gateway = await testGateway({ channels, models: MODELS, tracing: { endpoint: url } });
    assert.equal((await gateway.post('/v1/responses/compact', { model: 'm', input: 'hi' })).status, 200);
  }
  const attempt = spans.find(({ kind }) => kind === 3);
  assert.ok(attempt !== undefined);
  assert.equal(well.requests[0]?.headers.get('traceparent'), `00-${attempt.traceId}-${attempt.spanId}-01`);
});

test('a collector that refuses, and one that is not there, cost spans and no request', async (t) => {
  const { url } = await collector(t, 500);
  const well = await fakeUpstream(sayMessages('fine'));
  t.after(() => well.close());
  for (const endpoint of [url, 'http://127.0.0.1:1']) {
    const lines: string[] = [];
    {
      await using gateway = await testGateway({ channels: [channel(well.url)], models: MODELS, tracing: { endpoint } });
      assert.match(await (await gateway.post('/v1/messages', ask({ stream: true }))).text(), /message_stop/);
      await gateway.running.stop();
      lines.push(...gateway.logLines);
    }
    assert.match(lines.join(''), /spans were lost/);
  }
});

test('a client that does not sample is believed, and its context still goes on', async (t) => {
  const { url, spans } = await collector(t);
  const well = await fakeUpstream(sayMessages('fine'));
  t.after(() => well.close());
  {
    await using gateway = await testGateway({ channels: [channel(well.url)], models: MODELS, tracing: { endpoint: url } });
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00';
    await (await gateway.post('/v1/messages', ask({ stream: true }), { headers: { traceparent } })).text();
  }
  assert.equal(spans.length, 0);
  assert.match(well.requests[0]?.headers.get('traceparent') ?? '', /^00-0af7651916cd43dd8448eb211c80319c-[0-9a-f]{16}-00$/);
});

test('trace contexts: what is written is read again; nothing else is', () => {
  const hex = (length: number) =>
    fc
      .string({ unit: fc.constantFrom(...'0123456789abcdef'), minLength: length, maxLength: length })
      .filter((id) => !/^0+$/.test(id));
  fc.assert(
    fc.property(hex(32), hex(16), fc.boolean(), (traceId, spanId, sampled) => {
      const context = { traceId, spanId, sampled };
      assert.deepEqual(readTraceContext(traceHeaders(context)), context);
    }),
  );
  fc.assert(fc.property(fc.string(), (traceparent) => readTraceContext({ traceparent }) === undefined));
  const id = '0af7651916cd43dd8448eb211c80319c';
  for (const [traceparent, good] of [
    [`00-${id}-b7ad6b7169203331-01-more`, false],
    [`cc-${id}-b7ad6b7169203331-01-more`, true],
    [`ff-${id}-b7ad6b7169203331-01`, false],
    [`00-${'0'.repeat(32)}-b7ad6b7169203331-01`, false],
    [`00-${id}-0000000000000000-01`, false],
    [`00-${id.toUpperCase()}-b7ad6b7169203331-01`, false],
  ] as const) {
    assert.equal(readTraceContext({ traceparent }) !== undefined, good, traceparent);
  }
  const traceparent = `00-${id}-b7ad6b7169203331-01`;
  for (const [tracestate, state] of [
    ['a=1', 'a=1'],
    [`a=${'1'.repeat(510)}`, `a=${'1'.repeat(510)}`],
    [`a=${'1'.repeat(511)}`, undefined],
    ['a=\u00fc', undefined],
    [' ', undefined],
  ] as const) {
    assert.equal(readTraceContext({ traceparent, tracestate })?.state, state, 'other systems’ words go on whole or not at all');
  }
});
