/** Channels for tests of the parts that choose among them: built by the configuration itself, so that nothing is missing. */
import type { Channel } from '../../../src/http/config/config.ts';
import { channel, MODELS, testConfig } from '../../support/test-gateway.ts';

/** Messages Channels for the model `m`, each with its changes. */
export function channelsOf(...changes: readonly object[]): readonly Channel[] {
  return testConfig({ channels: changes.map((change) => channel('http://127.0.0.1:1', change)), models: MODELS }).channels;
}
