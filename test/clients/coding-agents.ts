/**
 * Real coding agents, unmodified and headless, each doing a task of several turns with tools against the gateway, over every upstream
 * dialect. The simulator says what a model would; the agents' transcripts are printed. An agent that is not installed is skipped.
 */
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Script } from '../../src/simulator/script.ts';
import type { Simulator } from '../../src/simulator/simulator.ts';
import { eventually, type TestGateway, testGateway } from '../support/test-gateway.ts';
import { formChannel, startVendors, type UpstreamForm, upstreamForms } from '../support/upstream-forms.ts';
import { missing, type Ran, run } from './run-agent.ts';
import { MODEL, SETUPS, type Tool } from './setups.ts';

const FORMS = upstreamForms(import.meta.filename);
const FINAL = 'The note says first-42.';

const call = ({ name, command }: Tool, text: string): Script => ({
  match: wantsTools,
  reply: {
    pieces: [
      { type: 'reasoning', summary: ['I need the shell.'], raw: 'I need the shell.', opaque: true },
      { type: 'tool', name, arguments: JSON.stringify({ [command]: text, ...(name === 'Bash' ? { description: 'note' } : {}) }) },
    ],
    usage: { input: 100, output: 20 },
  },
});
const finish: Script = {
  match: wantsTools,
  reply: { pieces: [{ type: 'text', text: FINAL }], usage: { input: 120, output: 6 } },
};

/** Breaks off when words have reached the client, whatever the dialect says before them. */
const broken: Script = {
  match: wantsTools,
  reply: { pieces: [{ type: 'text', text: `The note says ${'nothing of use '.repeat(12)}` }] },
  faults: [{ type: 'cut', at: 9 }],
  pace: { cut: 'event', ms: 5 },
};

/** Some agents ask for titles and the like beside their task; those requests bring no tools and are answered by the demonstration. */
function wantsTools({ body }: { readonly body: unknown }): boolean {
  return typeof body === 'object' && body !== null && 'tools' in body && Array.isArray(body.tools) && body.tools.length > 0;
}

/** What the gateway logged of its WebSockets. A v2 client warms up first, and that is a turn. */
async function socketsOf(gateway: TestGateway): Promise<{ version: string; turns: number }[]> {
  const closed = () => gateway.logLines.filter((line) => line.includes('"websocket closed"'));
  await eventually(() => closed().length > 0, 'the socket is closed');
  return closed().map((line) => {
    const { version, turns }: { version: string; turns: number } = JSON.parse(line);
    return { version, turns };
  });
}

async function withGateway(
  form: UpstreamForm,
  body: (gateway: TestGateway, simulator: Simulator, work: string) => Promise<void>,
): Promise<void> {
  const simulator = await startVendors({ pace: { cut: 'packet' } });
  const work = mkdtempSync(join(tmpdir(), 'mizu-agent-work-'));
  // Responses upstreams take custom tools as they are.
  const options = form.type === 'responses' ? {} : { lower_custom_tools: true };
  try {
    await using gateway = await testGateway({
      channels: [formChannel(form, simulator.url, { models: [MODEL], options })],
      models: { [MODEL]: { price: { input: '0.01', output: '0.02' } } },
    });
    await body(gateway, simulator, work);
  } finally {
    await simulator.close();
    rmSync(work, { recursive: true, force: true });
  }
}

function print(title: string, { text }: Ran, simulator: Simulator): void {
  console.log(`\n==== ${title} (${simulator.requests.length} upstream requests) ====\n${text.slice(0, 4_000)}\n====`);
}

for (const setup of SETUPS) {
  for (const form of FORMS) {
    test(`F27: ${setup.title}, upstream ${form.name}: two tool turns and an answer`, { skip: missing(setup) }, async () => {
      await withGateway(form, async (gateway, simulator, work) => {
        simulator.enqueue(
          call(setup.tool, 'echo first-$((40+2)) > note.txt && echo written'),
          call(setup.tool, 'cat note.txt'),
          finish,
        );
        const ran = await run(setup, gateway.url, work);
        print(`${setup.title} over ${form.name}`, ran, simulator);
        assert.equal(ran.code, 0, ran.text);
        assert.ok(ran.text.includes(FINAL), 'the answer reached the user');
        assert.equal(readFileSync(join(work, 'note.txt'), 'utf8'), 'first-42\n', 'the tool ran');
        const asked = simulator.requests.filter(wantsTools);
        assert.equal(asked.length, 3);
        for (const result of ['written', 'first-42'])
          assert.ok(asked[2]?.text.includes(result), 'both results reached the model');
        assert.ok(!asked.some(({ text }) => text.includes('mz2.')), 'no envelope left the gateway');
        for (const entry of gateway.store.settled) assert.equal(entry.status, 'success', entry.errorText ?? 'it failed');
        if (setup.socket !== undefined) assert.deepEqual(await socketsOf(gateway), [setup.socket], 'all turns on one socket');
      });
    });
  }
}

for (const setup of SETUPS) {
  for (const form of FORMS) {
    const title = `F27: ${setup.title}, upstream ${form.name}: an upstream that dies in mid-turn is ${setup.broken} by the agent`;
    test(title, { skip: missing(setup) }, async () => {
      await withGateway(form, async (gateway, simulator, work) => {
        simulator.enqueue(
          call(setup.tool, 'echo first-$((40+2)) > note.txt && cat note.txt'),
          broken,
          ...(setup.broken === 'retried' ? [finish] : []),
        );
        const ran = await run(setup, gateway.url, work);
        print(`${setup.title} over ${form.name}, cut in mid-turn`, ran, simulator);
        if (setup.broken === 'retried') {
          assert.equal(ran.code, 0, ran.text);
          assert.ok(ran.text.includes(FINAL), 'the answer reached the user');
        } else {
          assert.ok(!ran.text.includes(FINAL), 'nobody finished the answer');
          const isTold = ran.code !== 0 || ran.text.includes('upstream closed the connection');
          if (setup.broken === 'told') assert.ok(isTold, ran.text);
        }
        const failed = gateway.store.settled.filter(({ status }) => status === 'error');
        assert.equal(failed.length, 1, 'the broken turn is told as one');
      });
    });
  }
}
