/** What is wrong with a configuration file: every problem with the path of its key. Never holds a secret's value. */

export interface ConfigProblem {
  /** `channels[0].base_url`; empty for the file itself. */
  readonly path: string;
  readonly message: string;
}

export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  readonly problems: readonly ConfigProblem[];
  /** There is no such file. */
  readonly isMissing: boolean;

  constructor(problems: readonly ConfigProblem[], isMissing = false) {
    super(problems.map(({ path, message }) => (path === '' ? message : `${path}: ${message}`)).join('\n'));
    this.problems = problems;
    this.isMissing = isMissing;
  }
}

/** `/channels/0/base_url` as `channels[0].base_url`. */
export function pathOfPointer(pointer: string): string {
  return joinPath(partsOf(pointer));
}

/** The parts of a JSON pointer, unescaped. */
export function partsOf(pointer: string): string[] {
  return pointer
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'));
}

/** `['channels', 0, 'base_url']` as `channels[0].base_url`; what is no plain name stands quoted in brackets. */
export function joinPath(parts: readonly (string | number)[]): string {
  let path = '';
  for (const part of parts) {
    if (/^\d+$/.test(String(part))) path += `[${part}]`;
    else if (/^[A-Za-z_$][\w$]*$/.test(String(part))) path += path === '' ? part : `.${part}`;
    else path += `[${JSON.stringify(part)}]`;
  }
  return path;
}
