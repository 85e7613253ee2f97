/**
 * Installs the agents that `npm run test:clients` drives, each in a folder of its own outside the repository: they are large and some are
 * proprietary. Usage: node test/clients/install.ts FOLDER [NAME … | all]   (names and what is installed by default: `agents.ts`)
 */
import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { AGENTS, isInstalled } from './agents.ts';

const [folder, ...names] = process.argv.slice(2);
if (folder === undefined) {
  console.error('usage: node test/clients/install.ts FOLDER [NAME … | all]');
  process.exit(2);
}
const root = resolve(folder);
if (root.startsWith(`${resolve('.')}/`)) {
  console.error('the folder must be outside the repository');
  process.exit(2);
}

const byDefault = [...AGENTS.values()].filter(({ isDefault }) => isDefault).map(({ name }) => name);
const wanted = names.length === 0 ? byDefault : names.includes('all') ? [...AGENTS.keys()] : names;
for (const name of wanted) {
  const agent = AGENTS.get(name);
  if (agent === undefined) {
    console.error(`there is no agent ${name}: ${[...AGENTS.keys()].join(', ')}`);
    process.exit(2);
  }
  if (isInstalled(root, agent)) {
    console.log(`${name}: there already`);
    continue;
  }
  const home = join(root, name);
  mkdirSync(home, { recursive: true });
  writeFileSync(join(home, 'package.json'), '{"private":true}\n');
  const { status } = spawnSync('npm', ['install', '--no-audit', '--no-fund', '--save-exact', ...agent.specs], {
    cwd: home,
    stdio: 'inherit',
  });
  console.log(`${name}: ${status === 0 && isInstalled(root, agent) ? 'installed' : 'not installed'}`);
}
