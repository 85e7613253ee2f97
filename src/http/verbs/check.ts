/** `mizu check`: reads the configuration as `serve` would, and says what it found. Shows no secret. */
import { report, type Verb } from './verb.ts';

export const check: Verb = async (context) => {
  const config = context.config();
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
