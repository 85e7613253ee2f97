/**
 * Real coding agents, unmodified and headless, each doing a task of several turns with tools against the gateway, over every
 * upstream dialect. The simulator says what a model would; what counts is the agent's result: its last message, the files that it
 * wrote, the requests that it took. One table at the end says which agent did what over which upstream. An agent that is not
 * installed is skipped.
 */
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import type { ReceivedRequest } from '../../src/simulator/journal.ts';
import type { Script } from '../../src/simulator/script.ts';
import type { Simulator } from '../../src/simulator/simulator.ts';
import { eventually, type TestGateway, testGateway } from '../support/test-gateway.ts';
import { formChannel, startVendors, type UpstreamForm, upstreamForms } from '../support/upstream-forms.ts';
import { missing, type Ran, run } from './run-agent.ts';
import { MODEL, type Setup, SETUPS, type Task, type Tool } from './setups.ts';

/** The four dialects, and with `MIZU_FORMS=all` each of their clouds. */
const FORMS = upstreamForms(import.meta.filename);

const PROMPT = 'Write the answer into note.txt, read it back, and tell me what it says.';
const FINAL = 'The note says first-42.';
const WRITE = 'echo first-$((40+2)) > note.txt && echo written';
const FORM = 'Fill in the form: Ann, who is 42.';
const SUMMARY = 'The note was written; what is left is to tell the user.';

/** One turn of the model: it thinks, and calls the tool once for each command, side by side. */
function calls({ name, command, more }: Tool, commands: readonly string[], input = 100): Script {
  const tools = commands.map((text) => ({
    type: 'tool' as const,
    name,
    arguments: JSON.stringify({ [command]: command === 'commands' ? [text] : text, ...more }),
    signature: true as const,
  }));
  const thought = { type: 'reasoning' as const, summary: ['I need the shell.'], raw: 'I need the shell.', opaque: true as const };
  return { match: wantsTools, reply: { pieces: [thought, ...tools], usage: { input, output: 20 } } };
}

/** Signed as gemini signs it: who takes the last block for the result must find the text there. */
const finish: Script = {
  match: wantsTools,
  reply: { pieces: [{ type: 'text', text: FINAL, signature: true }], usage: { input: 120, output: 6 } },
};

/** Breaks off when words have reached the client, whatever the dialect says before them. */
const broken: Script = {
  match: wantsTools,
  reply: { pieces: [{ type: 'text', text: `The note says ${'nothing of use '.repeat(12)}` }] },
  faults: [{ type: 'cut', at: 9 }],
  pace: { cut: 'event', ms: 5 },
};

/** A refusal that nobody is to try again. */
const refused: Script = {
  match: wantsTools,
  reply: { pieces: [] },
  faults: [{ type: 'status', status: 400, message: 'This turn is refused.' }],
};

const summary: Script = {
  match: asksForSummary,
  reply: { pieces: [{ type: 'text', text: SUMMARY }], usage: { input: 900, output: 9 } },
};

/** The vendor judges the schema that it was asked with. */
const filled: Script = { strict: true, reply: { pieces: [{ type: 'text', text: '{"name":"Ann","age":42}' }] } };

/**
 * Some agents ask for titles and the like beside their task; those requests bring no tools and are answered by the demonstration.
 */
function wantsTools(request: ReceivedRequest): boolean {
  const { body } = request;
  const tools = typeof body === 'object' && body !== null && 'tools' in body ? body.tools : undefined;
  return Array.isArray(tools) && tools.length > 0 && !asksForSummary(request);
}

/** The prompt of a compaction. */
function asksForSummary({ text }: { readonly text: string }): boolean {
  return text.includes('CONTEXT CHECKPOINT COMPACTION');
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

interface Place {
  readonly gateway: TestGateway;
  readonly simulator: Simulator;
  readonly work: string;
  readonly ask: (prompt: string, isResumed?: boolean) => Promise<Ran>;
}

async function at(setup: Setup, form: UpstreamForm, body: (place: Place) => Promise<void>): Promise<void> {
  const simulator = await startVendors({ pace: { cut: 'packet' } });
  const [work, home] = ['work', 'home'].map((name) => mkdtempSync(join(tmpdir(), `mizu-agent-${name}-`))) as [string, string];
  // Responses upstreams take custom tools as they are.
  const options = form.type === 'responses' ? {} : { lower_custom_tools: true };
  try {
    await using gateway = await testGateway({
      channels: [formChannel(form, simulator.url, { models: [MODEL], options })],
      models: { [MODEL]: { price: { input: '0.01', output: '0.02' } } },
    });
    const ask = (prompt: string, isResumed = false) => {
      const task: Task = { home, work, url: gateway.url, prompt, isResumed };
      return run(setup, task);
    };
    await body({ gateway, simulator, work, ask });
    const sent = simulator.requests.filter(({ text }) => text.includes('mz2.'));
    assert.equal(sent.length, 0, 'no envelope left the gateway');
  } finally {
    await simulator.close();
    for (const folder of [work, home]) rmSync(folder, { recursive: true, force: true });
  }
}

function saidFinal(setup: Setup, { code, text }: Ran): void {
  assert.equal(code, 0, text);
  const last = setup.lastMessage === undefined ? text : setup.lastMessage(text);
  if (setup.lastMessage === undefined) assert.ok(last.includes(FINAL), text);
  else assert.equal(last, FINAL, text);
}

interface Scenario {
  readonly title: string;
  readonly isFor: (setup: Setup) => boolean;
  readonly play: (setup: Setup, place: Place) => Promise<void>;
}

const SCENARIOS: readonly Scenario[] = [
  {
    title: 'tools, two of them side by side, reasoning and signatures',
    isFor: () => true,
    async play(setup, { gateway, simulator, work, ask }) {
      const both = ['cat note.txt', 'echo second-$((40+3)) > second.txt && echo done-43'];
      simulator.enqueue(calls(setup.tool, [WRITE]), calls(setup.tool, both), finish);
      const ran = await ask(PROMPT);
      saidFinal(setup, ran);
      assert.equal(readFileSync(join(work, 'note.txt'), 'utf8'), 'first-42\n', 'the tool ran');
      assert.equal(readFileSync(join(work, 'second.txt'), 'utf8'), 'second-43\n', 'and the other beside it');
      const asked = simulator.requests.filter(wantsTools);
      assert.equal(asked.length, 3, ran.text);
      for (const result of ['written', 'first-42', 'done-43'])
        assert.ok(asked[2]?.text.includes(result), `${result} reached the model`);
      for (const entry of gateway.store.settled) assert.equal(entry.status, 'success', entry.errorText ?? 'it failed');
      if (setup.socket !== undefined) assert.deepEqual(await socketsOf(gateway), [setup.socket], 'all turns on one socket');
    },
  },
  {
    title: 'an upstream that dies in mid-turn',
    isFor: () => true,
    async play(setup, { gateway, simulator, ask }) {
      const command = 'echo first-$((40+2)) > note.txt && cat note.txt';
      simulator.enqueue(calls(setup.tool, [command]), broken, ...(setup.broken === 'retried' ? [finish] : []));
      const ran = await ask(PROMPT);
      if (setup.broken === 'retried') saidFinal(setup, ran);
      else {
        assert.ok(!ran.text.includes(FINAL), 'nobody finished the answer');
        const isTold = ran.code !== 0 || ran.text.includes('upstream closed the connection');
        if (setup.broken === 'told') assert.ok(isTold, ran.text);
      }
      const failed = gateway.store.settled.filter(({ status }) => status === 'error');
      assert.equal(failed.length, 1, 'the broken turn is told as one');
    },
  },
  {
    title: 'a turn that is refused, and a process that goes on with the conversation',
    isFor: ({ resumes }) => resumes === true,
    async play(setup, { simulator, ask }) {
      simulator.enqueue(calls(setup.tool, [WRITE]), { ...refused, times: 20 });
      const first = await ask(PROMPT);
      assert.ok(!first.text.includes(FINAL), first.text);
      const asked = simulator.requests.filter(wantsTools).length;
      assert.equal(asked, 2 + (setup.asksAgain ?? 0), `a refusal is not tried again: ${first.text}`);
      simulator.reset();
      simulator.enqueue(finish);
      saidFinal(setup, await ask('Go on.', true));
      const last = simulator.requests.findLast(wantsTools)?.text ?? '';
      for (const said of [PROMPT, 'written', 'Go on.']) assert.ok(last.includes(said), `${said} is in the history`);
    },
  },
  {
    title: 'a compaction in the middle',
    isFor: ({ compacts }) => compacts === true,
    async play(setup, { simulator, ask }) {
      simulator.enqueue(calls(setup.tool, [WRITE], 120_000), summary, finish);
      const ran = await ask(PROMPT);
      saidFinal(setup, ran);
      assert.equal(simulator.requests.filter(asksForSummary).length, 1, ran.text);
      assert.ok(simulator.requests.findLast(wantsTools)?.text.includes(SUMMARY), 'the conversation went on from the summary');
    },
  },
  {
    title: 'an answer in a schema with bounds',
    isFor: ({ parses }) => parses === true,
    async play(_setup, { simulator, ask }) {
      simulator.enqueue(filled);
      const ran = await ask(FORM);
      assert.equal(ran.code, 0, ran.text);
      assert.ok(ran.text.includes('Ann is 42'), ran.text);
      assert.equal(simulator.requests.length, 1, ran.text);
    },
  },
];

/** A letter for each scenario over each upstream: done, failed, not run, or not for this agent. */
const table = new Map<string, string[][]>();

for (const setup of SETUPS) {
  const skip = missing(setup);
  const row = FORMS.map(() => SCENARIOS.map(({ isFor }): string => (isFor(setup) ? '-' : '·')));
  table.set(setup.title, row);
  for (const [place, form] of FORMS.entries()) {
    for (const [index, scenario] of SCENARIOS.entries()) {
      if (!scenario.isFor(setup)) continue;
      const mark = (letter: string) => row[place]?.splice(index, 1, letter);
      test(`F27: ${setup.title}, upstream ${form.name}: ${scenario.title}`, { skip }, async () => {
        mark('✖');
        await at(setup, form, (found) => scenario.play(setup, found));
        mark('✔');
      });
    }
  }
}

test.after(() => {
  const width = Math.max(...SETUPS.map(({ title }) => title.length));
  const line = (title: string, cells: readonly string[]) =>
    `${title.padEnd(width)}  ${cells.map((cell) => cell.padEnd(16)).join('')}`.trimEnd();
  const rows = [...table].map(([title, cells]) =>
    line(
      title,
      cells.map((letters) => letters.join('')),
    ),
  );
  const legend = SCENARIOS.map(({ title }, index) => `${index + 1}: ${title}`);
  legend.push('✔ done, ✖ failed, - not run (not installed, or not chosen), · not for this agent');
  console.log(
    [
      '',
      ...legend,
      line(
        '',
        FORMS.map(({ name }) => name),
      ),
      ...rows,
    ].join('\n'),
  );
});
