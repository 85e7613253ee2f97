/** The worked example of docs/money.md, run: every figure that it prints is what the gateway says. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { LEDGER } from '../../../src/cli/ledger.ts';
import { typed } from '../../support/verbs.ts';
import { CLIENTS, moneyGateway, PRICE } from '../../support/money-gateway.ts';

const DOCUMENT = readFileSync(new URL('../../../docs/money.md', import.meta.url), 'utf8');

/** As the document groups digits. */
const grouped = (nanos: bigint): string => nanos.toString().replace(/\B(?=(\d{3})+$)/g, ' ');

test('docs/money.md: reservation, charge, journal rows and balances are the real ones', async (t) => {
  const says = (text: string): void => assert.ok(DOCUMENT.includes(text), `docs/money.md does not say: ${text}`);
  says(
    `"price": ${JSON.stringify(PRICE).replaceAll('":"', '": "').replaceAll(',"', ', "').replace('{', '{ ').replace('}', ' }')}`,
  );
  const gateway = await moneyGateway(t);
  const ada = await gateway.owner(10_000_000_000n);
  gateway.simulator.enqueue({
    reply: { pieces: [{ type: 'text', text: 'Good morning to you' }], usage: { input: 11, cached: 5, output: 4 } },
    pace: { ms: 20 },
  });
  const { path, ask } = CLIENTS.messages;
  const response = await gateway.post(ada, path, ask('messages', true, 'say good morning'));
  const reserved = gateway.store.admission.reserved(ada.key.id);
  says(`**${grouped(reserved)}**`);
  assert.equal(reserved, 4n * 5_000n + 50n * 25_000n);
  await response.text();

  const [row] = await gateway.settled(ada, 1);
  assert.ok(row?.charge);
  for (const { item, quantity, rate, amount } of row.charge.lines)
    says(`| ${item} | ${quantity} | ${grouped(rate / 1_000_000n)} | ${grouped(amount / 1_000_000n)} |`);
  says(`**${grouped(row.charge.total)}**`);
  assert.equal(gateway.store.admission.reserved(ada.key.id), 0n);

  const printed: string[] = [];
  const has = { store: () => Promise.resolve(gateway.store) };
  await typed(LEDGER, ['ledger', 'journal'], { account: ada.account.name }, has, (text) => void printed.push(text));
  const lines = printed.join('\n').split('\n').slice(1);
  assert.equal(lines.length, 4);
  for (const line of lines) {
    const [seq = '', , kind = '', ...rest] = line.split(/ +/);
    const cells = rest.length > 2 ? rest.slice(0, 3).map((cell) => cell.replace(/acct_\w+/, 'acct_…')) : ['', '', ''];
    says(`| ${[seq, kind, ...cells].join(' | ')} |`.replace(/ +/g, ' '));
  }

  for (const url of ['/user/balance', '/api/codex/usage']) says(await (await gateway.get(ada, url)).text());
  const wallet = await gateway.wallet(ada);
  says(`${grouped(10_000_000_000n)} − ${grouped(row.charge.total)} = ${grouped(wallet)}`);
  assert.match(await (await gateway.get(ada, '/v1/usage')).text(), /"requests":1,.*"charged":"0\.0001325"/);
  says('"charged":"0.0001325"');
});
