/**
 * The balance of a key in two formats: its sub-account's when it has one, otherwise the wallet's. Costs nothing and is never
 * refused for money.
 */
import { GatewayError } from '../../codecs/canonical/error.ts';
import type { Balance } from '../../store/keys.ts';
import { formatUsd } from '../../store/money.ts';
import { fromStore } from '../from-store.ts';
import { principalOf } from '../request/authenticate.ts';
import { Waiting } from '../exchange/reply.ts';
import type { Call, Handler } from '../gateway.ts';

/** What an account without a limit shows: clients read a number here. */
const UNLIMITED = '999999999.00';

export const userBalance: Handler = async (call) => {
  const balance = await balanceOf(call);
  const total = shown(balance);
  answer(call, {
    is_available: balance.unlimited || balance.nanos > 0n,
    balance_infos: [{ currency: 'USD', total_balance: total, granted_balance: '0.00', topped_up_balance: total }],
  });
};

export const codingBalance: Handler = async (call) => {
  const balance = await balanceOf(call);
  answer(call, {
    // Required by the client that reads this; there are no plans and no rate windows here.
    plan_type: 'unknown',
    rate_limit: null,
    credits: {
      has_credits: balance.unlimited || balance.nanos > 0n,
      unlimited: balance.unlimited,
      balance: shown(balance),
    },
  });
};

async function balanceOf(call: Call): Promise<Balance> {
  const { store, clock } = call.gateway;
  const { keys, settlements } = store;
  const { key } = await principalOf(call);
  // A client that has read an answer to its end must see its charge here.
  await fromStore(clock, settlements.caughtUp());
  const balance = await fromStore(clock, keys.balance(key.id));
  if (balance === undefined) throw new GatewayError('unauthorized', 'The API key is missing or not valid.');
  return balance;
}

function shown(balance: Balance): string {
  return balance.unlimited ? UNLIMITED : formatUsd(balance.nanos);
}

function answer(call: Call, body: object): void {
  new Waiting(call).answer({ status: 200, body: JSON.stringify(body), headers: { 'cache-control': 'no-store' } });
}
