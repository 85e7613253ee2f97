/** Runs `decode.cases.md`; the events of each good case are also accepted by the canonical order. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { GatewayError } from '../../../../src/codecs/canonical/error.ts';
import type { CanonicalEvent, ItemDelta, ItemHead, Step } from '../../../../src/codecs/canonical/event.ts';
import type { OutputItem } from '../../../../src/codecs/canonical/item.ts';
import { GenerateContentDecoder } from '../../../../src/codecs/gemini/index.ts';
import { chunkOf, contextOf, frameOf, ordered } from '../support.ts';

const file = readFileSync(new URL('decode.cases.md', import.meta.url), 'utf8');

function block(section: string, kind: string): string[] {
  return new RegExp(`\`\`\`${kind}\\n([\\s\\S]*?)\`\`\``).exec(section)?.[1]?.trimEnd().split('\n') ?? [];
}

function chunkOfLine(line: string): unknown {
  if (!line.startsWith('[')) return line;
  const [, parts = '[]', reason] = /^(\[.*\])(?: ([A-Z_]+))?$/.exec(line) ?? [];
  return chunkOf(JSON.parse(parts), reason);
}

function line(event: CanonicalEvent): string {
  switch (event.type) {
    case 'response.start':
      return 'start';
    case 'item.start':
      return `${event.index} start ${headOf(event.head)}`;
    case 'item.delta':
      return `${event.index} ${deltaOf(event.delta)}`;
    case 'item.end':
      return `${event.index} end ${event.status} ${itemOf(event.item)}`;
    case 'usage.report':
      return `usage ${JSON.stringify(event.usage)}`;
    case 'native.event':
      return `native ${event.name}`;
    case 'response.end': {
      const { outcome } = event;
      if (outcome.status === 'completed') return `end completed ${outcome.stop}`;
      return outcome.status === 'incomplete'
        ? `end incomplete ${outcome.reason}`
        : `end ${outcome.status} ${outcome.error.shownCode}`;
    }
  }
}

function headOf(head: ItemHead): string {
  return head.kind === 'toolCall' ? `${shortId(head.callId)} ${head.tool.name}` : head.kind;
}
function deltaOf(delta: ItemDelta): string {
  if (delta.kind === 'citation') return 'citation';
  return delta.kind === 'input' ? `input ${delta.text}` : `${delta.kind} ${JSON.stringify(delta.text)}`;
}
function itemOf(item: OutputItem): string {
  const opaque = 'opaque' in item && item.opaque !== undefined ? ` ~${item.opaque.value}@${item.opaque.form}` : '';
  switch (item.kind) {
    case 'toolCall':
      return `${shortId(item.callId)} ${item.tool.name} ${item.input}${opaque}`;
    case 'reasoning':
      return `reasoning ${JSON.stringify(item.summary?.join('|') ?? '')}${opaque}`;
    case 'media':
      return `media ${item.media.source.from === 'inline' ? item.media.source.mime : ''}${opaque}`;
    case 'native':
      return 'native';
    default:
      return `${item.kind} ${JSON.stringify(item.text)}${opaque}`;
  }
}
function shortId(id: string): string {
  return id.replace(/^call_0+/, 'call_');
}

describe('generative-content streams', () => {
  for (const section of file.split(/^## /m).slice(1)) {
    it(section.slice(0, section.indexOf('\n')), () => {
      const steps: Step[] = [];
      const said: string[] = [];
      try {
        const decoder = new GenerateContentDecoder(contextOf());
        for (const one of block(section, 'in')) decoder.push(frameOf(chunkOfLine(one)), steps);
        decoder.end(steps);
        ordered(steps);
      } catch (error) {
        if (!(error instanceof GatewayError)) throw error;
        said.push(`! ${error.code} ${error.details.reason}`);
      }
      const lines = [...steps.flatMap((step) => step.events.map(line)), ...said];
      assert.deepEqual(lines, block(section, 'out'));
    });
  }
});
