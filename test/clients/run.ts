/**
 * `npm run test:clients`: the coding agents against the gateway, in a network that holds the loopback only, where this machine
 * allows one. --only takes a pattern of test names. MIZU_CLIENTS names the folder that `install.ts` filled (default: mizu-clients
 * in the folder for temporary files).
 */
import { spawnSync } from 'node:child_process';
import { scriptOptions } from '../support/script-options.ts';

const { values } = scriptOptions('[MIZU_CLIENTS=FOLDER] npm run test:clients -- [--only PATTERN]', {
  options: { only: { type: 'string' } },
});

const chosen = values.only === undefined ? [] : [`--test-name-pattern=${values.only}`];
// In this process, so that the table is printed as it is; what failed is told behind it.
const test = [
  process.execPath,
  '--test',
  '--test-isolation=none',
  '--test-reporter=dot',
  ...chosen,
  'test/clients/open-responses.ts',
  'test/clients/coding-agents.ts',
];
const alone = ['unshare', '-r', '-n', 'sh', '-c', 'ip link set lo up && exec "$@"', 'sh'];

const isolated = spawnSync(alone[0] ?? '', [...alone.slice(1), 'true']).status === 0;
console.log(isolated ? 'network: loopback only' : 'network: NOT isolated (no user namespaces here)');
const [command = '', ...args] = isolated ? [...alone, ...test] : test;
const { status } = spawnSync(command, args, { stdio: 'inherit' });
process.exit(status ?? 1);
