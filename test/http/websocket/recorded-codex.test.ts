/**
 * What real Codex sent on WebSockets of both versions, sent again: upgrade headers, frames, and the ids that it continued from.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { testGateway } from '../../support/test-gateway.ts';
import { formChannel, startVendors, upstreamForms } from '../../support/upstream-forms.ts';
import { connect, type ServerEvent } from './socket-client.ts';

const folder = process.env['MIZU_FIXTURES'];
const skip = folder === undefined ? 'MIZU_FIXTURES is not set' : false;

interface Recorded {
  readonly kind: string;
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: { readonly [member: string]: unknown };
}

function recorded(version: string): Recorded[] {
  const text = readFileSync(`${folder}/client-requests/codex-websocket-${version}.jsonl`, 'utf8');
  return text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
}

const PRICE = { price: { input: '1', output: '2' } };
/** Headers that the connection makes itself. */
const OWN = /^(host|connection|upgrade|authorization|sec-websocket-.*)$/;

/** Responses upstreams take custom tools as they are. */
const lowering = (type: string) => (type === 'responses' ? {} : { lower_custom_tools: true });

for (const version of ['v1', 'v2'] as const) {
  for (const form of upstreamForms(import.meta.filename)) {
    test(`codex ${version} frames over ${form.name}`, { skip }, async () => {
      const [upgrade, ...frames] = recorded(version);
      const creates = frames.filter(({ kind }) => kind === 'ws-in').flatMap(({ body }) => (body === undefined ? [] : [body]));
      assert.ok(upgrade !== undefined && creates.length >= 2);
      const model = String(creates[0]?.['model']);
      const simulator = await startVendors({ pace: { cut: 'packet' } });
      await using gateway = await testGateway({
        channels: [formChannel(form, simulator.url, { models: [model], options: lowering(form.type) })],
        models: { [model]: PRICE },
      });
      const headers = Object.fromEntries(Object.entries(upgrade.headers ?? {}).filter(([name]) => !OWN.test(name)));
      const client = await connect(gateway, { path: upgrade.url, headers });
      const asked = callsAnsweredBy(creates);
      let lastId: string | undefined;
      for (const [index, body] of creates.entries()) {
        const call = asked[index];
        // The recorded tool result names a call, so that call is what the model says in the turn before.
        if (body['generate'] !== false) {
          simulator.enqueue({
            strict: false,
            reply: {
              pieces:
                call === undefined
                  ? [{ type: 'text', text: 'All done.' }]
                  : [{ type: 'tool', id: call, name: 'exec_command', arguments: '{"cmd":"ls"}' }],
            },
          });
        }
        const previous = typeof body['previous_response_id'] === 'string' ? { previous_response_id: lastId } : {};
        const events = await client.turn({ ...body, ...previous });
        const end = events.at(-1);
        assert.equal(end?.type, version === 'v1' ? 'response.done' : 'response.completed', JSON.stringify(end));
        lastId = idOf(end);
      }
      const sent = simulator.requests.at(-1)?.text ?? '';
      for (const body of creates)
        for (const text of outputsIn(body)) assert.ok(sent.includes(JSON.stringify(text).slice(1, -1)), 'the tool result');
      assert.ok(!sent.includes('client_metadata') && !sent.includes('"generate"'));
      client.ws.close();
      await simulator.close();
    });
  }
}

function idOf(event: ServerEvent | undefined): string {
  assert.ok(event !== undefined);
  return (event['response'] as { id: string }).id;
}

interface Item {
  readonly type?: string;
  readonly call_id?: string;
  readonly output?: unknown;
}

function itemsOf(body: { readonly [member: string]: unknown }): readonly Item[] {
  const { input } = body;
  return Array.isArray(input) ? input : [];
}

/** For each turn, the id of the call that the next one brings the result of. */
function callsAnsweredBy(creates: readonly { readonly [member: string]: unknown }[]): (string | undefined)[] {
  return creates.map((_, index) => {
    const next = creates[index + 1];
    return next === undefined ? undefined : itemsOf(next).find(({ type }) => type?.endsWith('_call_output') === true)?.call_id;
  });
}

function outputsIn(body: { readonly [member: string]: unknown }): string[] {
  return itemsOf(body).flatMap(({ output }) => (typeof output === 'string' ? [output] : []));
}
