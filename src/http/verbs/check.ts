/** `mizu check`: reads the configuration as `serve` would, and says what it found. Shows no secret. */
import type { Config } from '../config/config.ts';
import { ConfigError } from '../config/config-error.ts';
import { report, takes, type Verb, type VerbContext } from './verb.ts';

export const check: Verb = async (context) => {
  takes(context, 'check', 0);
  const config = readConfig(context);
  if (config === undefined) return 1;
  const unpriced = [...config.models.values()].filter(({ rates }) => rates === undefined).map(({ name }) => name);
  const unserved = [...config.models.keys()].filter((name) => !config.channels.some(({ models }) => models.has(name)));
  const notes = [
    ...unpriced.map((name) => `model ${name} has no price: it is not offered`),
    ...unserved.map((name) => `model ${name} is served by no channel`),
  ];
  const channels = config.channels.map(({ id, type, origin, models }) => ({ id, type, origin, models: [...models.keys()] }));
  const head = `the configuration is valid: ${channels.length} channels, ${config.models.size} models`;
  report(context, { valid: true, channels, models: [...config.models.keys()], notes }, [head, ...notes].join('\n'));
  return 0;
};

/** Undefined when it is wrong and the report says so; without `--json` the words of the error are the report. */
function readConfig(context: VerbContext): Config | undefined {
  try {
    return context.config();
  } catch (thrown) {
    if (!context.json || !(thrown instanceof ConfigError)) throw thrown;
    report(context, { valid: false, problems: thrown.problems }, thrown.message);
    return undefined;
  }
}
