/**
 * `npm run test:clients`: the coding agents against the gateway, in a network that holds the loopback only, where this machine allows one.
 * MIZU_CLIENTS names the folder that `install.ts` filled (default: mizu-clients in the folder for temporary files).
 */
import { spawnSync } from 'node:child_process';
import { scriptOptions } from '../support/script-options.ts';

scriptOptions('[MIZU_CLIENTS=FOLDER] npm run test:clients', {});

const test = [process.execPath, '--test', '--test-reporter=spec', 'test/clients/coding-agents.ts'];
const alone = ['unshare', '-r', '-n', 'sh', '-c', 'ip link set lo up && exec "$@"', 'sh'];

const isolated = spawnSync(alone[0] ?? '', [...alone.slice(1), 'true']).status === 0;
console.log(isolated ? 'network: loopback only' : 'network: NOT isolated (no user namespaces here)');
const [command = '', ...args] = isolated ? [...alone, ...test] : test;
const { status } = spawnSync(command, args, { stdio: 'inherit' });
process.exit(status ?? 1);
