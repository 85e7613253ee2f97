/**
 * Runs documents of cases (notation: `case-notation.ts`) on the pipeline, and replays each case cut in two at every byte, pumped
 * and piped, for every client dialect: the same events, the same frames. `MIZU_CASES` = `all` runs every cut, else a seeded
 * sample; `write` puts into the documents what is now, for the author to read.
 */
import assert from 'node:assert/strict';
import { singleFrames } from './runs.ts';
import { readFileSync, writeFileSync } from 'node:fs';
import { test } from 'node:test';
import type { Frame } from '../../src/codecs/codec.ts';
import { type Case, casesOf, lineOf, readable, refusalOf, rewritten } from './case-notation.ts';
import { DIALECTS } from './dialects.ts';
import type { TwoSided, UpstreamSide } from './laws.ts';
import {
  bytesOf,
  countingMint,
  type Decoded,
  decodeBytes,
  decodeContext,
  ownerOf,
  requestOf,
  responseContext,
  sseText,
} from './wire.ts';
import { piped, pumped, type Stages } from './wiring.ts';

/** A document of cases, and what its shorthand stands for. */
export interface CaseDocument {
  readonly url: URL;
  readonly upstream: UpstreamSide;
  /** A line of `upstream` as the `data` of an event. */
  readonly payload: (line: string) => string;
  /** A line of `client` as the `data` of an event; absent: it stands as it is. */
  readonly shown?: (line: string) => string;
}

const MODE = process.env['MIZU_CASES'];
/** Cuts of a case in the fast suite. */
const SAMPLE = 3;

export function runCases(document: CaseDocument): void {
  const { framed, name } = document.upstream;
  if (framed !== undefined && MODE === 'write') return;
  const behind = framed === undefined ? '' : `, behind ${name}`;
  for (const one of casesOf(readFileSync(document.url, 'utf8'))) {
    const run = new Run(document, one);
    test(`case${behind}: ${one.title}`, () => (MODE === 'write' ? run.write() : run.check()));
    test(`case${behind}, for every client and broken off behind every event: ${one.title}`, () => run.checkClients());
    test(`case${behind}, cut anywhere: ${one.title}`, () => run.checkCuts());
  }
}

class Run {
  readonly #document: CaseDocument;
  readonly #case: Case;
  readonly #frames: readonly Frame[];
  readonly #bytes: Uint8Array;

  constructor(document: CaseDocument, one: Case) {
    this.#document = document;
    this.#case = one;
    this.#frames = (one.blocks.upstream ?? []).map((line) => frameOf(document.payload(line)));
    this.#bytes = this.#written(this.#frames);
  }

  check(): void {
    const { events, client } = this.#case.blocks;
    const now = this.#now();
    if (events !== undefined) assert.deepEqual(now.events, events);
    const shown = this.#document.shown ?? ((line) => line);
    if (client !== undefined) assert.deepEqual(now.client, client.map(shown));
  }

  write(): void {
    const document = readFileSync(this.#document.url, 'utf8');
    const { client, events } = this.#case.blocks;
    const now = this.#now();
    const { shown } = this.#document;
    const kept = now.client.map((line, at) => {
      const short = client?.[at];
      return short !== undefined && shown?.(short) === line ? short : line;
    });
    const blocks = { ...(events && { events: now.events }), ...(client && { client: kept }) };
    writeFileSync(this.#document.url, rewritten(document, this.#case.title, blocks));
  }

  /** What breaks off behind any event is a legal stream for every client, too, and never a success that was none. */
  checkClients(): void {
    for (const client of DIALECTS)
      for (let length = 0; length <= this.#frames.length; length += 1) {
        const bytes = this.#written(this.#frames.slice(0, length));
        const ending = client.check(singleFrames(pumped([bytes], this.#stages(client))), true);
        if (!isGood(this.#decoded([bytes]))) assert.equal(ending, 'failure', `${client.client.dialect}, ${length} events`);
      }
  }

  async checkCuts(): Promise<void> {
    const events = linesOf(this.#decoded([this.#bytes]));
    const wanted = DIALECTS.map((client) => sseText(pumped([this.#bytes], this.#stages(client))));
    for (const [turn, at] of this.#cuts().entries()) {
      const pieces = [this.#bytes.subarray(0, at), this.#bytes.subarray(at)];
      const which = `cut at byte ${at}`;
      assert.deepEqual(linesOf(this.#decoded(pieces)), events, which);
      const client = DIALECTS[turn % DIALECTS.length] as TwoSided;
      const text = wanted[turn % DIALECTS.length];
      assert.equal(sseText(pumped(pieces, this.#stages(client))), text, `${which}, pumped, ${client.client.dialect}`);
      assert.equal(sseText(await piped(pieces, this.#stages(client))), text, `${which}, piped, ${client.client.dialect}`);
    }
  }

  #written(frames: readonly Frame[]): Uint8Array {
    const sse = bytesOf(sseText(frames));
    return this.#document.upstream.framed?.(sse) ?? sse;
  }

  #cuts(): number[] {
    const all = Array.from({ length: this.#bytes.length }, (_, at) => at);
    if (MODE === 'all') return all;
    // Spread over the case by a step that is its own: other cases are cut at other places.
    return Array.from({ length: SAMPLE }, (_, turn) => (turn * 7919 + this.#bytes.length * 31) % Math.max(1, all.length));
  }

  #now(): { events: string[]; client: string[] } {
    const own = DIALECTS.find(({ client }) => client.dialect === this.#document.upstream.upstream.dialect);
    const frames = own === undefined ? [] : pumped([this.#bytes], this.#stages(own));
    return { events: linesOf(this.#decoded([this.#bytes])), client: singleFrames(frames).map(({ data }) => readable(data)) };
  }

  #decoded(pieces: readonly Uint8Array[]): Decoded {
    const { upstream, framing } = this.#document.upstream;
    return decodeBytes(upstream, pieces, { request: this.#request('chat') }, framing);
  }

  #request(dialect: TwoSided['client']['dialect']) {
    const tools = (this.#case.blocks.tools ?? []).map((name) => ({ kind: 'function' as const, tool: { name }, at: 'tools' }));
    return requestOf(dialect, { tools, logprobs: { top: 20 } });
  }

  #stages({ client }: TwoSided): Stages {
    const { upstream, framing } = this.#document.upstream;
    const [owner, request] = [ownerOf(upstream), this.#request(client.dialect)];
    return {
      decoder: upstream.decodeEvents(decodeContext(owner, { request, mint: countingMint() })),
      encoder: client.encodeEvents(responseContext(client, owner, { request })),
      framing,
    };
  }
}

function linesOf({ events, failure }: Decoded): string[] {
  return [...events.map(lineOf), ...(failure === undefined ? [] : [refusalOf(failure)])];
}

function isGood({ failure, fold }: Decoded): boolean {
  return failure === undefined && (fold.outcome?.status === 'completed' || fold.outcome?.status === 'incomplete');
}

/** Vendors name their events by the type that stands in them. */
function frameOf(data: string): Frame {
  const [, event] = /^\{"type":"([^"]+)"/.exec(data) ?? [];
  return { event, data };
}
