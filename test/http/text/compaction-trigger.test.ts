/**
 * A `compaction_trigger` on Channels that compact by a summary: exactly one `compaction` item, whole, as a stream and over a
 * socket, with which any upstream can go on. A compaction that was altered, truncated or made for another account goes on
 * nowhere.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventually, KEY, type TestGateway, testGateway } from '../../support/test-gateway.ts';
import { formsConfig, startVendors, upstreamForms } from '../../support/upstream-forms.ts';
import { connect } from '../websocket/socket-client.ts';

const simulator = await startVendors();
test.after(() => simulator.close());
test.beforeEach(() => simulator.reset());

const FORMS = upstreamForms(import.meta.filename);
const CONFIG = formsConfig(FORMS, simulator.url, () => ({ compaction: 'summary' }));
const HISTORY = [
  { type: 'message', role: 'user', content: 'Read it.' },
  { type: 'function_call', call_id: 'call_1', name: 'read', arguments: '{}' },
  { type: 'function_call_output', call_id: 'call_1', output: 'It says hello.' },
  { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'It says hello.' }] },
];
const TOOLS = [{ type: 'function', name: 'read', parameters: { type: 'object', properties: {} } }];
const body = (model: string, more: object = {}) => ({
  ...{ model, input: [...HISTORY, { type: 'compaction_trigger' }], tools: TOOLS, tool_choice: 'auto', store: false },
  ...more,
});
const say = (text: string) => ({ reply: { pieces: [{ type: 'text' as const, text }], usage: { input: 40, output: 5 } } });
const summary = { reply: { pieces: [{ type: 'text' as const, text: 'They read: hello.' }], usage: { input: 40, output: 5 } } };

interface Compacted {
  readonly status: string;
  readonly output: readonly { readonly type: string; readonly id: string; readonly encrypted_content: string }[];
  readonly usage: { readonly input_tokens: number; readonly output_tokens: number };
}

function isCompacted({ status, output, usage }: Compacted): string {
  assert.equal(status, 'completed');
  assert.deepEqual(
    output.map(({ type }) => type),
    ['compaction'],
  );
  const [item] = output;
  assert.match(item?.id ?? '', /^cmp_/);
  assert.match(item?.encrypted_content ?? '', /^mz2\./);
  assert.deepEqual([usage.input_tokens, usage.output_tokens], [40, 5]);
  const asked = simulator.requests.at(-1)?.text ?? '';
  assert.match(asked, /summary of this conversation/);
  assert.doesNotMatch(asked, /compaction_trigger/);
  return item?.encrypted_content ?? '';
}

async function whole(gateway: TestGateway, model: string, key = KEY): Promise<string> {
  simulator.enqueue(summary);
  const answer = await gateway.post('/v1/responses', body(model), { headers: { authorization: `Bearer ${key}` } });
  const text = await answer.text();
  assert.equal(answer.status, 200, text);
  return isCompacted(JSON.parse(text));
}

for (const { name: model } of FORMS) {
  test(`${model}: one compaction item, whole, as a stream and over a socket; every upstream goes on with it`, async () => {
    await using gateway = await testGateway(CONFIG);
    const sealed = await whole(gateway, model);

    simulator.enqueue(summary);
    const streaming = { stream: true, stream_options: { include_obfuscation: false } };
    const stream = await (await gateway.post('/v1/responses', body(model, streaming))).text();
    // The summary is asked for whole, and vendors take options of a stream with a stream alone.
    assert.doesNotMatch(simulator.requests.at(-1)?.text ?? '', /stream_options/);
    const events = [...stream.matchAll(/^data: (\{.*\})$/gm)].map(([, data = '']) => JSON.parse(data));
    isCompacted(events.at(-1)?.response);
    assert.equal(events.at(-1)?.type, 'response.completed');
    const done = events.filter(({ type }) => type === 'response.output_item.done');
    assert.deepEqual(
      done.map(({ item }) => item.type),
      ['compaction'],
    );

    simulator.enqueue(summary);
    const client = await connect(gateway);
    const turn = await client.turn({ type: 'response.create', ...body(model) });
    const last = JSON.parse(JSON.stringify(turn.at(-1)));
    isCompacted(last.response);
    client.ws.close();
    await eventually(() => gateway.store.settled.length === 3, 'all rows');
    for (const { usage, model: billed } of gateway.store.settled) assert.deepEqual([usage?.output, billed], [5, model]);

    for (const { name: next } of FORMS) {
      const input = [
        { type: 'compaction', encrypted_content: sealed },
        { role: 'user', content: 'Go on.' },
      ];
      const answer = await gateway.post('/v1/responses', { model: next, input, tools: TOOLS });
      assert.equal(answer.status, 200, await answer.text());
      assert.match(simulator.requests.at(-1)?.text ?? '', /They read: hello\./);
    }
  });

  test(`${model}: an empty, cut or failed summary is no compaction, whole and as a stream`, async () => {
    await using gateway = await testGateway(CONFIG);
    for (const reply of [{ pieces: [] }, { pieces: [{ type: 'text' as const, text: 'half' }], finish: 'length' as const }]) {
      for (const stream of [false, true]) {
        simulator.enqueue({ reply });
        const text = await (await gateway.post('/v1/responses', body(model, { stream }))).text();
        assert.doesNotMatch(text, /"compaction"|response\.completed/);
        assert.match(text, /upstream_error/);
        gateway.running.gateway.dispatcher.health.keepOnly(new Set());
      }
    }
  });
}

/** One compaction through each of its doors: a trigger, the same as a stream, and the endpoint. */
const DOORS: Readonly<Record<string, (gateway: TestGateway, model: string) => Promise<Response>>> = {
  trigger: (gateway, model) => gateway.post('/v1/responses', body(model)),
  stream: (gateway, model) => gateway.post('/v1/responses', body(model, { stream: true })),
  endpoint: (gateway, model) => gateway.post('/v1/responses/compact', { model, input: HISTORY }),
};

test('a summary without a report is counted as the model wrote it, not as the envelope that it travels in', async () => {
  for (const { name: model } of FORMS) {
    for (const [door, ask] of Object.entries(DOORS)) {
      await using gateway = await testGateway(CONFIG);
      simulator.enqueue({ reply: { ...summary.reply, usage: null } });
      assert.equal((await ask(gateway, model)).status, 200);
      await eventually(() => gateway.store.settled.length === 1, 'the row');
      const [row] = gateway.store.settled;
      assert.equal(row?.usage?.output, 5, `${door} over ${model}: "They read: hello." is five tokens`);
      assert.ok(row.charge?.flags.includes('estimated'));
    }
  }
});

test('the reservation is for a summary, which the cap of the client does not bound', async () => {
  for (const { name: model } of FORMS) {
    await using gateway = await testGateway(CONFIG);
    const capped = { max_output_tokens: 16 };
    const doors = [
      () => gateway.post('/v1/responses', body(model, capped)),
      () => gateway.post('/v1/responses/compact', { model, input: HISTORY, ...capped }),
    ];
    for (const ask of doors) {
      simulator.enqueue({ ...summary, pace: { firstMs: 200 } });
      const asked = simulator.requests.length;
      const answer = ask();
      await eventually(() => simulator.requests.length > asked, 'the request');
      // 4,096 tokens at $2 a million, and the input.
      assert.ok(gateway.store.admission.reserved() >= 4_096n * 2_000n, `${model}: ${gateway.store.admission.reserved()}`);
      assert.equal((await answer).status, 200);
    }
  }
});

test('a summary that is none costs what it reported, like every failure', async () => {
  for (const { name: model } of FORMS) {
    for (const [door, ask] of Object.entries(DOORS)) {
      await using gateway = await testGateway(CONFIG);
      simulator.enqueue({ reply: { ...summary.reply, finish: 'length' } });
      const answer = await ask(gateway, model);
      assert.match(`${answer.status} ${await answer.text()}`, /upstream_error/, `${door} over ${model}`);
      await eventually(() => gateway.store.settled.length === 1, 'the row');
      const [row] = gateway.store.settled;
      assert.deepEqual([row?.status, row?.usage?.input, row?.usage?.output], ['error', 40, 5], `${door} over ${model}`);
      assert.equal(row?.charge?.total, 50_000n);
    }
  }
});

test('without the option: a responses upstream judges the trigger, any other refuses it at its path', async () => {
  await using gateway = await testGateway(formsConfig(FORMS, simulator.url));
  for (const { name: model, type } of FORMS) {
    const answer = await gateway.post('/v1/responses', body(model));
    const text = await answer.text();
    if (type === 'responses') assert.match(simulator.requests.at(-1)?.text ?? '', /compaction_trigger/);
    else assert.match(`${answer.status} ${text}`, /^400 .*"param":"input\[4\]","code":"unsupported_conversion"/s);
  }
});

test('a compaction that was altered, truncated or made for another account is refused at its path', async () => {
  await using gateway = await testGateway(CONFIG);
  const sealed = await whole(gateway, 'messages');
  gateway.store.addKey('sk-mizu-other', { accountId: 'acct_2' }, { id: 'acct_2' });
  const foreign = await whole(gateway, 'messages', 'sk-mizu-other');
  const last = sealed.at(-1) === 'A' ? 'B' : 'A';
  for (const [what, value] of Object.entries({
    altered: `${sealed.slice(0, -1)}${last}`,
    'its prefix altered': `MZ2.${sealed.slice(4)}`,
    truncated: sealed.slice(0, sealed.length / 2),
    'of another account': foreign,
    'a prefix alone': 'mz2.',
  })) {
    for (const { name: model } of FORMS) {
      const input = [
        { role: 'user', content: 'q' },
        { type: 'compaction', encrypted_content: value },
        { role: 'user', content: 'Go on.' },
      ];
      const answer = await gateway.post('/v1/responses', { model, input });
      assert.match(`${answer.status} ${await answer.text()}`, /^400 .*"param":"input\[1\]"/s, `${what} to ${model}`);
    }
  }
});

for (const { name: model } of FORMS) {
  test(`${model}: a conversation goes on behind its compaction: the trigger in its history asks for nothing more`, async () => {
    await using gateway = await testGateway(CONFIG);
    const asked = { model, tools: TOOLS };
    const trigger = { id: 'ct_1', type: 'compaction_trigger' };
    const kindsOf = async (answer: Response): Promise<{ readonly id: string; readonly output: { readonly type: string }[] }> => {
      const text = await answer.text();
      assert.equal(answer.status, 200, text);
      assert.doesNotMatch(simulator.requests.at(-1)?.text ?? '', /compaction_trigger/);
      return JSON.parse(text);
    };
    simulator.enqueue(summary, say('A word.'), say('Another.'), { reply: { ...summary.reply } });
    const compacted = await kindsOf(await gateway.post('/v1/responses', { ...asked, input: [...HISTORY, trigger] }));
    assert.deepEqual(
      compacted.output.map(({ type }) => type),
      ['compaction'],
    );
    const next = { role: 'user', content: 'Go on.' };
    const byId = await kindsOf(
      await gateway.post('/v1/responses', { ...asked, input: [next], previous_response_id: compacted.id }),
    );
    assert.deepEqual(
      byId.output.map(({ type }) => type),
      ['message'],
    );
    assert.doesNotMatch(simulator.requests.at(-1)?.text ?? '', /Write a summary/);
    const whole = await kindsOf(
      await gateway.post('/v1/responses', { ...asked, input: [...HISTORY, trigger, ...compacted.output, next] }),
    );
    assert.deepEqual(
      whole.output.map(({ type }) => type),
      ['message'],
    );
    const again = await kindsOf(
      await gateway.post('/v1/responses', { ...asked, input: [trigger], previous_response_id: byId.id }),
    );
    assert.deepEqual(
      again.output.map(({ type }) => type),
      ['compaction'],
    );
  });

  test(`${model}: what is continued by the id of a compaction is the user's messages and the summary alone`, async () => {
    await using gateway = await testGateway(CONFIG);
    const trigger = { type: 'compaction_trigger' };
    const first = [{ role: 'user', content: 'Find the word.' }, ...HISTORY.slice(1)];
    const steps = [
      { reply: say('Here it is.'), input: first },
      { reply: summary, input: [{ role: 'user', content: 'Now compact.' }, trigger] },
      { reply: say('A word.'), input: [{ role: 'user', content: 'Go on.' }] },
      { reply: say('The second summary.'), input: [trigger] },
      { reply: say('Another.'), input: [{ role: 'user', content: 'And on.' }] },
    ];
    const said: string[] = [];
    const client = await connect(gateway);
    for (const over of ['http', 'socket']) {
      let previous: string | undefined;
      for (const { reply, input } of steps) {
        simulator.enqueue(reply);
        const create = { model, tools: TOOLS, input, ...(previous === undefined ? {} : { previous_response_id: previous }) };
        if (over === 'http') {
          const answer = await gateway.post('/v1/responses', create);
          const text = await answer.text();
          assert.equal(answer.status, 200, text);
          previous = JSON.parse(text).id;
        } else {
          const turn = await client.turn({ type: 'response.create', ...create });
          previous = JSON.parse(JSON.stringify(turn.at(-1))).response.id;
        }
        said.push(simulator.requests.at(-1)?.text ?? '');
      }
    }
    client.ws.close();
    for (const from of [0, steps.length]) {
      const [, compacting = '', third = '', , fifth = ''] = said.slice(from);
      assert.match(compacting, /It says hello/);
      assert.match(compacting, /Here it is/);
      assert.doesNotMatch(third, /It says hello|call_1|Here it is/, 'what was summed up is gone');
      inOrder(third, ['Find the word.', 'Now compact.', 'They read: hello.', 'Go on.']);
      assert.doesNotMatch(fifth, /It says hello|They read|A word/, 'so is the first summary');
      inOrder(fifth, ['Find the word.', 'Now compact.', 'Go on.', 'The second summary.', 'And on.']);
    }
  });

  test(`${model}: the summary of a second compaction stands for that of the first, which is no message of the user`, async () => {
    await using gateway = await testGateway(CONFIG);
    const input = [...HISTORY];
    for (const [at, word] of ['first', 'second', 'third'].entries()) {
      simulator.enqueue({ reply: { pieces: [{ type: 'text', text: `The ${word} summary.` }], usage: { input: 40, output: 5 } } });
      input.push({ type: 'message', role: 'user', content: `Question ${at}.` });
      const answer = await gateway.post('/v1/responses/compact', { model, input });
      const text = await answer.text();
      assert.equal(answer.status, 200, text);
      const said = simulator.requests.at(-1)?.text ?? '';
      assert.match(said, /will not see an earlier summary/);
      if (at > 0) assert.match(said, /Summary of the conversation so far:/);
      const { output } = JSON.parse(text);
      assert.deepEqual(
        output.map(({ type }: { type: string }) => type),
        [...Array.from({ length: at + 2 }, () => 'message'), 'compaction'],
      );
      assert.doesNotMatch(text, /Summary of the conversation/);
      input.splice(0, input.length, ...output);
    }
  });
}

test('a compaction that is only named by its id goes on as its summary, whoever wrote that', async () => {
  await using gateway = await testGateway(CONFIG);
  for (const { name: model } of FORMS) {
    simulator.enqueue(say(`What ${model} kept.`));
    const made = await gateway.post('/v1/responses', { model, input: [...HISTORY, { type: 'compaction_trigger' }] });
    const { output } = JSON.parse(await made.text());
    for (const { name: next } of FORMS) {
      const input = [
        { type: 'item_reference', id: output[0].id },
        { role: 'user', content: 'Go on.' },
      ];
      const answer = await gateway.post('/v1/responses', { model: next, input });
      assert.equal(answer.status, 200, await answer.text());
      const asked = simulator.requests.at(-1)?.text ?? '';
      assert.match(asked, new RegExp(`What ${model} kept`), `${model} to ${next}`);
      assert.doesNotMatch(asked, /mz2\.|item_reference/, `${model} to ${next}`);
    }
  }
});

function inOrder(text: string, words: readonly string[]): void {
  const places = words.map((word) => text.indexOf(word));
  assert.ok(!places.includes(-1), `${words[places.indexOf(-1)]} is not in ${text}`);
  assert.deepEqual(
    places,
    places.toSorted((a, b) => a - b),
  );
}
