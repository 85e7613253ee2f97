/** Channels for tests of the parts that choose among them: built by the configuration itself, so that nothing is missing. */
import type { Channel } from '../../../src/http/config/config.ts';
import { parseConfig } from '../../../src/http/config/parse.ts';
import { parsePrice } from '../../../src/store/prices.ts';
import { channel, MODELS } from '../../support/test-gateway.ts';

/** Messages Channels for the model `m`, each with its changes. */
export function channelsOf(...changes: readonly object[]): readonly Channel[] {
  const file = { channels: changes.map((change) => channel('http://127.0.0.1:1', change)), models: MODELS };
  const options = { env: {}, readFile: () => '', parsePrice, path: 'mizu.config.json', revision: 1, nowMs: 0 };
  return parseConfig(JSON.stringify(file), options).channels;
}
