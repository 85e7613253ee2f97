/**
 * The notation of `.cases.md`: a case is a section, its fenced blocks are named by what they hold, one payload or event a line.
 *
 *     upstream   what the upstream sends: the `data` of one event a line, in the shorthand that the document's head explains
 *     tools      the names of the functions that the request declares
 *     events     the canonical events behind the order; a last line `refused CODE REASON` where the gateway refuses the answer
 *     client     what a client of the upstream's own dialect reads: the `data` of one event a line
 *
 * An event is its item's index, what happens, and the rest as JSON, where there is more: `0 start text {"role":"assistant"}`, `0
 * text "Hel"`, `0 end completed text {…}`, `usage {…}`, `end completed {"stop":"end"}`. An opaque value is written `value~form`.
 */
import type { GatewayError } from '../../src/codecs/canonical/error.ts';
import type { CanonicalEvent, ItemDelta } from '../../src/codecs/canonical/event.ts';
import { openForTests } from './wire.ts';

export const BLOCKS = ['upstream', 'tools', 'events', 'client'] as const;
export type Block = (typeof BLOCKS)[number];

export interface Case {
  readonly title: string;
  readonly blocks: Partial<Readonly<Record<Block, readonly string[]>>>;
}

/** Throws where a section has a block that no runner reads, has one twice, or expects nothing. */
export function casesOf(document: string): Case[] {
  return document
    .split(/^## /m)
    .slice(1)
    .map((section) => {
      const title = section.slice(0, section.indexOf('\n'));
      const blocks: Partial<Record<Block, readonly string[]>> = {};
      for (const [, name = '', text = ''] of section.matchAll(/^```(\S*)\n([\s\S]*?)^```$/gm)) {
        if (!isBlock(name) || blocks[name] !== undefined)
          throw new Error(`case '${title}': block '${name}' is unknown or stands twice`);
        blocks[name] = text === '' ? [] : text.replace(/\n$/, '').split('\n');
      }
      if (blocks.upstream === undefined || (blocks.events ?? blocks.client) === undefined)
        throw new Error(`case '${title}' has no upstream, or expects nothing`);
      return { title, blocks };
    });
}

function isBlock(name: string): name is Block {
  return (BLOCKS as readonly string[]).includes(name);
}

/** The document with the blocks of one case as they are now. */
export function rewritten(document: string, title: string, blocks: Case['blocks']): string {
  const start = document.indexOf(`## ${title}\n`);
  const next = document.indexOf('\n## ', start + 1);
  const end = next === -1 ? document.length : next;
  const section = document
    .slice(start, end)
    .replaceAll(/^```(\S+)\n[\s\S]*?^```$/gm, (old, name: Block) =>
      blocks[name] === undefined ? old : `\`\`\`${name}\n${blocks[name].map((line) => `${line}\n`).join('')}\`\`\``,
    );
  return document.slice(0, start) + section + document.slice(end);
}

export function lineOf(event: CanonicalEvent): string {
  switch (event.type) {
    case 'response.start':
      return line('start', without(event, 'type'));
    case 'item.start':
      return line(`${event.index} start ${event.head.kind}`, without(event.head, 'kind'));
    case 'item.delta':
      return `${event.index} ${deltaOf(event.delta)}`;
    case 'item.end':
      return line(`${event.index} end ${event.status} ${event.item.kind}`, without(event.item, 'kind'));
    case 'usage.report':
      return line('usage', event.usage);
    case 'native.event':
      return line(`native ${event.name}`, { body: event.body });
    case 'response.end':
      return line(`end ${event.outcome.status}`, without(event.outcome, 'status'));
  }
}

function deltaOf(delta: ItemDelta): string {
  if (delta.kind === 'citation') return line('citation', delta.citation);
  const part = delta.kind === 'summary' ? ` ${delta.part}` : '';
  return line(`${delta.kind}${part} ${JSON.stringify(delta.text)}`, without(delta, 'kind', 'part', 'text'));
}

export function refusalOf({ code, details }: GatewayError): string {
  return `refused ${code} ${details.reason}`;
}

/** What a client reads, with the gateway's own words by short names: the response's id, the model, what an envelope holds. */
export function readable(data: string): string {
  return data
    .replaceAll(/"(resp_mizu_|chatcmpl-|msg_)0{32}"/g, '"R"')
    .replaceAll('"logical-model"', '"M"')
    .replaceAll(/"(mz2\.[^"]*)"/g, (_, sealed: string) => `"sealed ${openForTests(sealed)?.value}"`);
}

function line(words: string, rest: object): string {
  const json = JSON.stringify(rest, shorter);
  return json === '{}' ? words : `${words} ${json}`;
}

function without(value: object, ...keys: string[]): object {
  return Object.fromEntries(Object.entries(value).filter(([key]) => !keys.includes(key)));
}

/** Maps as objects, errors by what a client may see of them, opaque values without their owner. */
function shorter(_key: string, value: unknown): unknown {
  if (value instanceof Map) return Object.fromEntries(value);
  if (value instanceof Error) {
    const { shownCode, message, details } = value as GatewayError;
    return { code: shownCode, message, status: details.upstream?.status };
  }
  if (typeof value === 'object' && value !== null && 'owner' in value && 'value' in value) {
    const { value: text, form } = value as { value: string; form?: string };
    return form === undefined ? text : `${text}~${form}`;
  }
  return value;
}
