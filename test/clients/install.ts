/**
 * Installs the agents that `npm run test:clients` drives, each in a folder of its own outside the repository: they are large and
 * some are
 * proprietary. Usage: node test/clients/install.ts FOLDER [NAME … | all]   (names and what is installed by default: `agents.ts`)
 * Those for Python need `python3.11` or later as `python3`, and pip as this machine has it set up.
 */
import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { AGENTS, type Agent, isInstalled, pipNote } from './agents.ts';

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
  const isDone = 'python' in agent.start ? pipInstalls(agent) : npmInstalls(agent);
  console.log(`${name}: ${isDone && isInstalled(root, agent) ? 'installed' : 'not installed'}`);
}

function npmInstalls({ name, specs }: Agent): boolean {
  const home = join(root, name);
  mkdirSync(home, { recursive: true });
  writeFileSync(join(home, 'package.json'), '{"private":true}\n');
  return succeeds('npm', ['install', '--no-audit', '--no-fund', '--save-exact', ...specs], home);
}

function pipInstalls({ name, specs }: Agent): boolean {
  const home = join(root, name);
  const isRecent = 'import sys; sys.exit(sys.version_info < (3, 11))';
  const python = ['python3.11', 'python3'].find((each) => spawnSync(each, ['-c', isRecent]).status === 0);
  if (python === undefined) {
    console.error(`${name}: there is no Python 3.11 or later`);
    return false;
  }
  if (!succeeds(python, ['-m', 'venv', home])) return false;
  if (!succeeds(join(home, 'bin/python'), ['-m', 'pip', 'install', '-q', ...specs])) return false;
  writeFileSync(pipNote(root, name), specs.join('\n'));
  return true;
}

function succeeds(command: string, args: readonly string[], cwd = root): boolean {
  return spawnSync(command, args, { cwd, stdio: 'inherit' }).status === 0;
}
