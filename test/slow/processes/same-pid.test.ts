/** A verb in a container of its own, on the folder of a gateway in another: both are number 1 there, which LMDB cannot tell apart. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { resolve } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { noPidNamespaces, PID_NAMESPACE } from '../../support/pid-namespace.ts';
import { install } from '../../support/processes.ts';

test('a verb with the pid of a gateway in another container says so, changes nothing, and the gateway goes on', {
  skip: noPidNamespaces,
  timeout: 120_000,
}, async () => {
  const channels = [{ id: 'c', type: 'messages', base_url: 'http://127.0.0.1:9', api_key: 'k', models: ['m'] }];
  const models = { m: { price: { input: '1', output: '1' } } };
  await using installed = await install({ listen: { host: '127.0.0.1', port: 0 }, operations: null, channels, models });
  const gateway = await installed.serveAt({ command: PID_NAMESPACE });
  const [program, ...args] = PID_NAMESPACE;
  const credit = [process.execPath, resolve('src/main.ts'), 'accounts', 'credit', 'tests', '5', '--config', installed.configPath];
  await assert.rejects(promisify(execFile)(program, [...args, ...credit]), {
    code: 1,
    stderr: /^mizu: unavailable: the store cannot be opened: a process of another container has it open under the pid 1[^\n]*\n$/,
  });
  assert.match((await installed.run('balance')).out, /1000\.00/);
  const headers = { authorization: `Bearer ${installed.key}` };
  assert.equal((await fetch(`${gateway.url}/v1/models`, { headers })).status, 200);
});
