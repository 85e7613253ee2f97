import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { upstreamFault } from '../../../../src/codecs/canonical/error.ts';
import { responsesClient } from '../../../../src/codecs/responses/index.ts';
import { checkResponsesStream } from '../../../../src/codecs/responses/lifecycle.ts';
import { casesOf, CREATED, decodeAll, encodeAll, eventsOnly, framesOf, readable, responseContext } from '../support.ts';

const READ = CREATED.replace('"r"', '"R"').replace('"m"', '"M"');

const DOCUMENTS = ['repair-indices.cases.md', 'backfill.cases.md'].map((name) =>
  readFileSync(new URL(name, import.meta.url), 'utf8'),
);

for (const { title, block } of DOCUMENTS.flatMap(casesOf)) {
  const upstream = framesOf(...block('upstream').map((line) => (line === '…' ? CREATED : line)));
  const { steps } = decodeAll(upstream);

  test(`mended: ${title}`, () => {
    const frames = encodeAll(steps);
    checkResponsesStream(frames);
    assert.deepEqual(
      frames.map((frame) => readable(frame.data)),
      block('client').map((line) => (line === '…' ? READ : line)),
    );
    const items = steps
      .flatMap((step) => step.events)
      .flatMap((event) => (event.type === 'item.end' ? [{ index: event.index, status: event.status, item: event.item }] : []));
    assert.deepEqual(
      items.map((item) => JSON.stringify(item)),
      block('items'),
    );
    checkResponsesStream(encodeAll(eventsOnly(steps)));
  });

  test(`mended: ${title}: breaks off anywhere and is closed`, () => {
    for (let length = 1; length < steps.length; length += 1) {
      const encoder = responsesClient.encodeEvents(responseContext());
      const frames = encodeAll([]);
      for (const step of steps.slice(0, length)) encoder.push(step, frames);
      encoder.fail(upstreamFault('truncated', 'It broke off.'), frames);
      checkResponsesStream(frames);
      assert.equal(frames.at(-1)?.event, 'response.failed');
    }
  });
}
