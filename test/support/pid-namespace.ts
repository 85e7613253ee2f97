/** Pids of their own for a child process, as in a container: it is number 1, and this machine's others are not there. */
import { execFileSync } from 'node:child_process';

/** Runs a command so: `[...PID_NAMESPACE, 'node', 'main.ts']`. It ends with what it is run by. */
export const PID_NAMESPACE = ['unshare', '--pid', '--fork', '--mount-proc', '--kill-child'] as const;

/** Why it cannot be had here, or false. */
export const noPidNamespaces: string | false = ((): string | false => {
  const [program, ...args] = PID_NAMESPACE;
  try {
    execFileSync(program, [...args, 'true'], { stdio: 'ignore' });
    return false;
  } catch (error) {
    return `no namespaces of pids: ${String(error)}`;
  }
})();
