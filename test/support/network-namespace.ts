/**
 * A network of its own for a child process: a Linux namespace with wires to this machine that can be pulled. What is sent into a
 * pulled wire is lost and nobody is told, which no proxy of ours can imitate. Needs root and `ip`; where they are missing, tests
 * skip and say so.
 */
import { execFileSync } from 'node:child_process';
import { randomInt } from 'node:crypto';

export interface Wire {
  /** This machine's address on the wire: what the namespace can reach. */
  readonly here: string;
  /** The namespace's own address on the wire. */
  readonly there: string;
  /** Pulls it out: packets are lost in both directions, connections stay as they are. */
  cut(): void;
  heal(): void;
}

export interface NetworkNamespace {
  readonly wires: readonly Wire[];
  /** Runs a command inside, as the same process: `[...command, 'node', 'main.ts']`. */
  readonly command: readonly string[];
  /** Ends once everything that ran inside has ended. */
  remove(): void;
}

function ip(...args: readonly string[]): void {
  execFileSync('ip', args, { stdio: ['ignore', 'ignore', 'pipe'], encoding: 'utf8' });
}

/** Why network namespaces cannot be used here, or false. */
export const noNamespaces: string | false = ((): string | false => {
  try {
    makeNetworkNamespace(1).remove();
    return false;
  } catch (error) {
    const said = error instanceof Error && 'stderr' in error ? String(error.stderr).trim() : String(error);
    return `no network namespaces: ${said === '' ? String(error) : said}`;
  }
})();

/**
 * Throws when this process may not make one. Addresses are of 198.18.0.0/15, which is kept for such benches and routed nowhere.
 */
export function makeNetworkNamespace(wires: number): NetworkNamespace {
  const tag = randomInt(0x1000000).toString(16).padStart(6, '0');
  const name = `mizu-${tag}`;
  ip('netns', 'add', name);
  try {
    ip('-n', name, 'link', 'set', 'lo', 'up');
    return {
      wires: Array.from({ length: wires }, (_, index) => addWire(name, `mz${tag}${index}`)),
      command: ['ip', 'netns', 'exec', name],
      // Its end of each wire goes with it, and the other end with that.
      remove: () => ip('netns', 'delete', name),
    };
  } catch (error) {
    ip('netns', 'delete', name);
    throw error;
  }
}

function addWire(namespace: string, device: string): Wire {
  const net = `198.${18 + randomInt(2)}.${randomInt(256)}`;
  const first = 4 * randomInt(64);
  const [here, there] = [`${net}.${first + 1}`, `${net}.${first + 2}`];
  ip('link', 'add', device, 'type', 'veth', 'peer', 'name', 'wire', 'netns', namespace);
  ip('-n', namespace, 'link', 'set', 'wire', 'name', `${device}i`);
  ip('address', 'add', `${here}/30`, 'dev', device);
  ip('-n', namespace, 'address', 'add', `${there}/30`, 'dev', `${device}i`);
  ip('link', 'set', device, 'up');
  ip('-n', namespace, 'link', 'set', `${device}i`, 'up');
  return { here, there, cut: () => ip('link', 'set', device, 'down'), heal: () => ip('link', 'set', device, 'up') };
}
