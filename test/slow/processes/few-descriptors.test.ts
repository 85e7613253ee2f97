/** A gateway that may open few files, and a stranger who opens connections until none is left. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { connect } from 'node:net';
import { test } from 'node:test';
import { fakeUpstream, jsonAnswer, wholeMessage } from '../../support/fake-upstream.ts';
import { install, waitFor } from '../../support/processes.ts';
import { ask, channel, MODELS } from '../../support/test-gateway.ts';

const FILES = 120;

test('where a stranger has left no descriptor, clients are told so, and no Channel is blamed for it', async (t) => {
  // Each request needs a connection of its own to the upstream.
  const upstream = await fakeUpstream(jsonAnswer(200, wholeMessage('fine'), { connection: 'close' }));
  t.after(() => upstream.close());
  await using place = await install({ operations: null, channels: [channel(upstream.url)], models: MODELS });
  const serving = await place.serveAt({ command: ['bash', '-c', `ulimit -n ${FILES}; exec "$@"`, 'bash'] });
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  t.after(() => agent.destroy());
  const post = async (): Promise<{ status: number | undefined; text: string }> => {
    const headers = { authorization: `Bearer ${place.key}`, 'content-type': 'application/json' };
    const asked = request(`${serving.url}/v1/messages`, { method: 'POST', agent, headers }).end(JSON.stringify(ask()));
    const [response] = await once(asked, 'response');
    return { status: response.statusCode, text: (await response.setEncoding('utf8').toArray()).join('') };
  };
  assert.equal((await post()).status, 200);

  const port = Number(new URL(serving.url).port);
  const crowd = Array.from({ length: FILES * 2 }, () => connect(port, '127.0.0.1').on('error', () => undefined));
  t.after(() => crowd.map((socket) => socket.destroy()));
  await waitFor(
    () => (crowd.filter(({ destroyed }) => destroyed).length > FILES / 2 ? true : undefined),
    () => 'the table is never full',
  );
  for (let n = 0; n < 12; n++) {
    const { status, text } = await post();
    assert.equal(status, 503, text);
    assert.match(text, /"overloaded"/);
  }
  for (const socket of crowd) socket.destroy();
  await waitFor(
    async () => ((await post()).status === 200 ? true : undefined),
    () => 'it never serves again',
  );
  assert.ok(!serving.text().includes('"msg":"circuit"'), 'no circuit was told');
  await serving.stop();
  assert.match((await place.run('ledger', 'verify')).out, /no difference/);
});
