/**
 * Documentation that is printed from the code: docs/losses.md, docs/options.md, docs/verbs.md, mizu.schema.json, the state
 * diagrams in ARCHITECTURE.md, the tables of docs/reliability.md and CONTRIBUTING.md. `npm run docs` writes them; tests fail
 * while they are out of date.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import type { Decision } from '../../src/codecs/canonical/features.ts';
import { REQUEST_FEATURES, RESPONSE_FEATURES } from '../../src/codecs/canonical/features.ts';
import { ITEM, RESPONSE } from '../../src/codecs/canonical/lifecycle.ts';
import * as chat from '../../src/codecs/chat/lifecycle.ts';
import * as completions from '../../src/codecs/completions/lifecycle.ts';
import * as gemini from '../../src/codecs/gemini/lifecycle.ts';
import * as messages from '../../src/codecs/messages/lifecycle.ts';
import { CLIENTS, UPSTREAM_NAMES } from '../../src/codecs/registry.ts';
import * as responses from '../../src/codecs/responses/lifecycle.ts';
import { familyOf } from '../../src/cli/perform.ts';
import { verbsOf } from '../../src/cli/command-line.ts';
import { CONFIG_SCHEMA } from '../../src/http/config/schema.ts';
import { EXCHANGE } from '../../src/http/exchange/reply.ts';
import { SESSION } from '../../src/http/websocket/lifecycle.ts';
import { HOLD } from '../../src/store/ledger.ts';
import { VIDEO } from '../../src/store/videos.ts';
import { printMutation } from '../mutation/results.ts';
import { covers, FAULTS, INCIDENTS, printRows } from './fault-rows.ts';
import { printFigures, readFigures } from './figures.ts';
import { mermaid } from './mermaid.ts';
import { printOptions } from './print-options.ts';
import { scriptOptions } from './script-options.ts';

const ROOT = new URL('../../', import.meta.url);
export const LOSSES = new URL('docs/losses.md', ROOT);
export const ARCHITECTURE = new URL('ARCHITECTURE.md', ROOT);

export const OPTIONS = new URL('docs/options.md', ROOT);
export const VERBS = new URL('docs/verbs.md', ROOT);
export const RELIABILITY = new URL('docs/reliability.md', ROOT);
export const CONTRIBUTING = new URL('CONTRIBUTING.md', ROOT);

export function printLosses(): string {
  return [
    '# What each dialect keeps',
    '',
    'Printed from the loss tables of the codecs by `npm run docs`. When both sides speak the same dialect nothing is lost. When they do not,',
    'the encoder has an answer for every feature that a conversation can hold:',
    '',
    '- **keep**: it is said as it is.',
    '- *coerce*: it is said in another form, which the table names.',
    '- drop: it is left out, and named in the log at level `debug` (`losses` of a request, `answer_losses` of an answer).',
    '- **refuse**: it is an error, `unsupported_conversion` for requests and `response_not_representable` for answers.',
    '',
    '## Requests, by the dialect of the upstream',
    '',
    ...table(
      REQUEST_FEATURES,
      // One that speaks another's dialect has a column where it has losses of its own.
      [...UPSTREAM_NAMES]
        .filter(([, { losses }], at, all) => all.findIndex(([, other]) => other.losses === losses) === at)
        .map(([name, { losses }]) => [name, losses]),
    ),
    '',
    '## Answers, by the dialect of the client',
    '',
    ...table(
      RESPONSE_FEATURES,
      CLIENTS.map(({ dialect, losses }) => [dialect, losses]),
    ),
    '',
  ].join('\n');
}

/** What is typed behind `mizu`, and what it does, by family. */
export function printVerbs(): string {
  const escaped = (text: string): string => text.replaceAll('|', '\\|');
  const isNeverRun = (): never => {
    throw new Error('a verb is only described here');
  };
  const rows = verbsOf(isNeverRun).map((verb) => {
    const flags = [...(verb.changes === true ? ['changes'] : []), ...(verb.confirms === true ? ['asks'] : [])].join(', ');
    return `| \`${escaped(`${familyOf(verb)} ${verb.usage}`.trimEnd())}\` | ${escaped(verb.does)} | ${flags} |`;
  });
  return [
    '# Every verb',
    '',
    'Printed from the verbs by `npm run docs`. `mizu help VERB` shows those of a family; in a checkout it is `npm run mizu -- VERB`.',
    '',
    '- All take `--config FILE` (default: `MIZU_CONFIG`, then `mizu.config.json`) and, where they print a result, `--json`.',
    '- *changes*: takes `--cause ID`, so that the same change is made once however often it is asked for, and `--note TEXT`, which stands beside it in',
    '  the journal.',
    '- *asks* before what cannot be undone; `--yes` answers for a script.',
    '- Exit codes: 0 done, 1 not done or something was found, 2 the command line makes no sense.',
    '',
    '| verb | what it does | |',
    '| --- | --- | --- |',
    ...rows,
    '',
  ].join('\n');
}

function table<F extends string>(
  features: readonly F[],
  columns: readonly (readonly [string, Readonly<Record<F, Decision>>])[],
): string[] {
  const rows = features.map((feature) => [feature, ...columns.map(([, losses]) => cell(losses[feature]))]);
  const head = ['feature', ...columns.map(([dialect]) => dialect)];
  return [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`);
}

function cell(decision: Decision): string {
  switch (decision.does) {
    case 'keep':
      return '**keep**';
    case 'coerce':
      return `*coerce*: ${escaped(decision.to)}`;
    case 'drop':
      return `drop: ${escaped(decision.why)}`;
    case 'refuse':
      return `**refuse**: ${escaped(decision.why)}`;
  }
}

function escaped(text: string): string {
  return text.replaceAll('|', '\\|').replaceAll('<', '&lt;');
}

export function printDiagrams(): string {
  const diagrams: readonly (readonly [string, string])[] = [
    ['A canonical response', mermaid(RESPONSE)],
    ['A canonical item', mermaid(ITEM)],
    ['chat: an upstream', mermaid(chat.UPSTREAM)],
    ['chat: a client', mermaid(chat.CLIENT)],
    ['completions: a client', mermaid(completions.CLIENT)],
    ['responses: a stream', mermaid(responses.STREAM)],
    ['responses: an output item', mermaid(responses.ITEM)],
    ['responses: a part', mermaid(responses.PART)],
    ['responses: the input of a call', mermaid(responses.INPUT)],
    ['messages: an upstream', mermaid(messages.UPSTREAM)],
    ['messages: a client', mermaid(messages.CLIENT)],
    ['gemini: an upstream', mermaid(gemini.STREAM)],
    ['An exchange', mermaid(EXCHANGE)],
    ['A WebSocket session', mermaid(SESSION)],
    ['A hold', mermaid(HOLD)],
    ['A video task', mermaid(VIDEO)],
  ];
  return diagrams.map(([title, diagram]) => `### ${title}\n\n\`\`\`mermaid\n${diagram}\`\`\`\n`).join('\n');
}

/** ARCHITECTURE.md with the diagrams as they are now. */
export function withDiagrams(text: string): string {
  return withGenerated(text, 'diagrams', printDiagrams());
}

/** docs/reliability.md with the figures that were recorded, and the tests that name each row. */
export function withReliability(text: string): string {
  const found = covers();
  const tables = {
    figures: printFigures(readFigures()),
    faults: printRows(FAULTS, found),
    incidents: printRows(INCIDENTS, found),
  };
  return Object.entries(tables).reduce((now, [name, table]) => withGenerated(now, name, `${table}\n`), text);
}

export function writeReliability(): void {
  writeFileSync(RELIABILITY, withReliability(readFileSync(RELIABILITY, 'utf8')));
}

/** CONTRIBUTING.md with what became of the mutants. */
export const withMutation = (text: string): string => withGenerated(text, 'mutation', printMutation());

export function writeContributing(): void {
  writeFileSync(CONTRIBUTING, withMutation(readFileSync(CONTRIBUTING, 'utf8')));
}

function withGenerated(text: string, name: string, content: string): string {
  const [open, close] = [`<!-- generated: ${name} -->`, `<!-- /generated: ${name} -->`];
  const [before, rest] = text.split(open);
  const after = rest?.split(close)[1];
  if (before === undefined || after === undefined) throw new Error(`there is no ${open} … ${close}`);
  return `${before}${open}\n\n${content}\n${close}${after}`;
}

if (import.meta.main) {
  scriptOptions('npm run docs', {});
  writeFileSync(LOSSES, printLosses());
  writeFileSync(OPTIONS, printOptions());
  writeFileSync(VERBS, printVerbs());
  writeFileSync(new URL('mizu.schema.json', ROOT), `${JSON.stringify(CONFIG_SCHEMA, null, 2)}\n`);
  // The formatter joins short lists of a JSON file, and a test compares what is parsed.
  writeFileSync(ARCHITECTURE, withDiagrams(readFileSync(ARCHITECTURE, 'utf8')));
  writeReliability();
  writeContributing();
}
