/**
 * The entry point, and the only file that reads the environment and argv. It has neither types nor the words of a module, and
 * `src/package.json` names no type: so a Node of years ago reads it as CommonJS, whatever its name ends with, and is told what to
 * do in place of a syntax error.
 */
const OLDEST = 24;

if (Number.parseInt(process.versions.node, 10) < OLDEST) {
  process.stderr.write(
    `mizu: this is Node ${process.versions.node}, and Mizu needs Node ${OLDEST} or newer. "npm start" and "npm run mizu" bring their own, once "npm install" has run\n`,
  );
  process.exitCode = 1;
} else {
  // Without a listener these would end the process during the start. They can be ignored: the configuration and the code are
  // about to be read anyway.
  if (process.argv.includes('serve')) for (const signal of ['SIGHUP', 'SIGUSR2']) process.on(signal, () => undefined);
  const main = async () => {
    const { enter } = await import('./cli/enter.ts');
    process.exitCode = await enter(process.argv.slice(2), process.env);
  };
  void main();
}
