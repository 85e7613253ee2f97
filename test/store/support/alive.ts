/** Whether a process of this machine lives. */
export function alive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    // Not ours to signal, but there.
    return error instanceof Error && 'code' in error && error.code === 'EPERM';
  }
}
