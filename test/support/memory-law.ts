/**
 * The memory law: whatever a key keeps in the gateway, driven up to its bound and beyond by the worst input. What the process
 * holds stays under the documented sum, the refusal is the documented one, and another key's 99th percentile is at most twice
 * what it is without.
 */
import assert from 'node:assert/strict';
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { type Simulator, startSimulator } from '../../src/simulator/simulator.ts';
import { KEY } from './test-gateway.ts';

const MIB = 1024 * 1024;
/** What is no part of any bound: compiled code, sockets, buffers of the pools, garbage that is not collected yet. */
const SLACK_BYTES = 40 * MIB;
/** Of the resident set: the pages of a heap are given back late. */
const RESIDENT_FACTOR = 3;
const RESIDENT_SLACK_BYTES = 160 * MIB;
/** V8 keeps the pages that a collection emptied in a pool for some seconds: what goes by itself was not kept. */
const RESIDENT_LOOKS = 20;
const BETWEEN_LOOKS_MS = 500;

/** Small requests of another key that are timed. */
const NEIGHBOURS = 101;
/** The machine is shared: what is noise goes away when it is measured again, and less than this is noise. Milliseconds. */
const TRIES = 4;
const NOISE_MS = 25;

export interface Attack {
  readonly name: string;
  /** The members of the configuration that bound it; `options` and `type` are those of the Channel `m`. */
  readonly file: object;
  /** The most that may be held while the attack is on. */
  readonly bound: number;
  /** Resolves when everything was sent; what it opened is closed by the returned function. Asserts the refusals. */
  drive(rig: Rig): Promise<() => void>;
}

interface Memory {
  readonly rss: number;
  /** Heap and buffers, after a collection. */
  readonly held: number;
}

export class Rig {
  readonly url: string;
  readonly simulator: Simulator;
  readonly #child: ChildProcess;

  constructor(url: string, simulator: Simulator, child: ChildProcess) {
    this.url = url;
    this.simulator = simulator;
    this.#child = child;
  }

  async #ask<Answer>(question: object): Promise<Answer> {
    const answered = once(this.#child, 'message');
    this.#child.send(question);
    const [answer] = await answered;
    return answer;
  }

  memory(): Promise<Memory> {
    return this.#ask({ do: 'memory' });
  }

  /** The longest turn of the gateway's event loop while this runs, in milliseconds of processor time. */
  async longestTurn(run: () => Promise<void>): Promise<number> {
    await this.#ask({ do: 'watch' });
    await run();
    return (await this.#ask<{ longestMs: number }>({ do: 'longest' })).longestMs;
  }

  /** As `/metrics` tells it. */
  async held(kind: string): Promise<number> {
    return (await this.#ask<{ held: number }>({ do: 'held', value: kind })).held;
  }

  /** Requests that the gateway has not done with, as `/metrics` tells it. */
  async inFlight(): Promise<number> {
    return (await this.#ask<{ inFlight: number }>({ do: 'in_flight' })).inFlight;
  }

  /** The port of a bare `node:http` server in the same process: it begins an answer to each request, and never ends it. */
  async plain(): Promise<number> {
    return (await this.#ask<{ port: number }>({ do: 'plain' })).port;
  }

  /** Connections of {@link plain}. */
  async plainOpen(): Promise<number> {
    return (await this.#ask<{ open: number }>({ do: 'plain_open' })).open;
  }

  async seal(value: string): Promise<string> {
    return (await this.#ask<{ sealed: string }>({ do: 'seal', value })).sealed;
  }

  post(body: string | object, key = KEY, path = '/v1/messages', signal?: AbortSignal): Promise<Response> {
    return fetch(this.url + path, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: typeof body === 'string' ? body : JSON.stringify(body),
      ...(signal === undefined ? {} : { signal }),
    });
  }

  /** Milliseconds of the 99th percentile of small requests of another key, each of which must be served. */
  async other(): Promise<number> {
    const times: number[] = [];
    for (let n = 0; n < NEIGHBOURS; n++) {
      const started = performance.now();
      const answer = await this.post(
        { model: 'free', max_tokens: 9, messages: [{ role: 'user', content: 'hi' }] },
        'sk-mizu-other',
      );
      assert.equal(answer.status, 200, await answer.text());
      times.push(performance.now() - started);
    }
    return times.sort((a, b) => a - b)[Math.floor(NEIGHBOURS * 0.99)] ?? 0;
  }
}

/**
 * A gateway with the models `m`, `free` and `lowered` (a gemini Channel, for which schemas are rewritten) in a process of its
 * own, for as long as `run` takes; `more`: Channels beside those of the three.
 */
export async function withRig<T>(
  file: object,
  run: (rig: Rig) => Promise<T>,
  more: (url: string) => readonly object[] = () => [],
): Promise<T> {
  const simulator = await startSimulator();
  const child = fork('test/support/memory-gateway.ts', {
    execArgv: ['--expose-gc'],
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  try {
    const ready = once(child, 'message');
    const channel = (id: string, more: object) => ({
      id,
      type: 'messages',
      base_url: simulator.url,
      api_key: 'k',
      models: [id],
      ...more,
    });
    const price = { price: { input: '1', output: '2' } };
    const { options = {}, type = 'messages', ...top } = file as { options?: object; type?: string };
    child.send({
      channels: [
        channel('m', { options, type }),
        channel('free', {}),
        channel('lowered', { type: 'gemini' }),
        ...more(simulator.url),
      ],
      models: { m: price, free: price, lowered: price },
      ...top,
    });
    const [{ url }] = await ready;
    return await run(new Rig(url, simulator, child));
  } finally {
    child.kill();
    await once(child, 'exit');
    await simulator.close();
  }
}

export function obeysMemoryLaw(attack: Attack): Promise<{ readonly held: number; readonly rss: number }> {
  return withRig(attack.file, async (rig) => {
    await rig.other();
    let quiet = await rig.other();
    const before = await rig.memory();
    const end = await attack.drive(rig);
    const most = attack.bound * RESIDENT_FACTOR + RESIDENT_SLACK_BYTES;
    let during = await rig.memory();
    for (let looks = 1; during.rss - before.rss > most && looks < RESIDENT_LOOKS; looks++) {
      await new Promise((resolve) => setTimeout(resolve, BETWEEN_LOOKS_MS));
      during = await rig.memory();
    }
    let beside = await rig.other();
    for (let tries = 1; beside > 2 * quiet + NOISE_MS && tries < TRIES; tries++) beside = Math.min(beside, await rig.other());
    end();
    if (beside > 2 * quiet + NOISE_MS) quiet = Math.max(quiet, await rig.other());
    const held = during.held - before.held;
    const rss = during.rss - before.rss;
    const shown = `${Math.round(held / MIB)} MiB held, ${Math.round(rss / MIB)} MiB resident, for a bound of ${attack.bound / MIB}`;
    assert.ok(held <= attack.bound + SLACK_BYTES, shown);
    assert.ok(rss <= most, shown);
    assert.ok(beside <= 2 * quiet + NOISE_MS, `${beside} ms beside the attack, ${quiet} ms without`);
    return { held, rss };
  });
}
