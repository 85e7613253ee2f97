/** Pictures are real, videos run their course, and both speak as their vendors do. */
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { inflateSync } from 'node:zlib';
import OpenAI, { toFile } from 'openai';
import { coloursOf, makePng, readPng } from '../../src/simulator/png.ts';
import { type Simulator, startSimulator } from '../../src/simulator/simulator.ts';
import { ask, dataOf } from './ask.ts';

let sim: Simulator;
let client: OpenAI;
let clock = 1_800_000_000_000;

before(async () => {
  sim = await startSimulator({ now: () => clock, video: { queueMs: 100, runMs: 100 } });
  client = new OpenAI({ baseURL: `${sim.url}/v1`, apiKey: 'k', maxRetries: 0 });
});
after(() => sim.close());
beforeEach(() => sim.reset());

test('a PNG inflates to exactly its pixels, with and without alpha', () => {
  for (const alpha of [false, true]) {
    const png = makePng({ width: 33, height: 7 }, 12345, alpha);
    assert.deepEqual(readPng(png), { width: 33, height: 7, alpha });
    const at = png.indexOf('IDAT');
    const data = png.subarray(at + 4, at + 4 + png.readUInt32BE(at - 4));
    assert.equal(inflateSync(data).length, 7 * (1 + 33 * (alpha ? 4 : 3)));
  }
  assert.equal(readPng(Buffer.from('no picture')), undefined);
  assert.ok(makePng({ width: 1024, height: 1024 }, 1, false).length < 20_000);
});

test('a picture has the colours of its prompt’s words, in order', () => {
  assert.deepEqual(coloursOf('A red door under a blue sky'), [...coloursOf('red'), ...coloursOf('blue'), ...coloursOf('sky')]);
  assert.deepEqual(coloursOf('nothing of the kind'), []);
  const [first] = coloursOf('red');
  const png = makePng({ width: 16, height: 2 }, 1, false, coloursOf('red'));
  const at = png.indexOf('IDAT');
  const pixels = inflateSync(png.subarray(at + 4, at + 4 + png.readUInt32BE(at - 4)));
  assert.deepEqual([...pixels.subarray(1, 4)], first);
});

const pngOf = (b64 = '') => readPng(Buffer.from(b64, 'base64'));

test('generations: count, size, transparency, usage', async () => {
  const answer = await client.images.generate({
    model: 'i',
    prompt: 'a door',
    n: 2,
    size: '1024x1536',
    background: 'transparent',
  });
  assert.equal(answer.data?.length, 2);
  assert.deepEqual(pngOf(answer.data?.[0]?.b64_json), { width: 1024, height: 1536, alpha: true });
  assert.notEqual(answer.data?.[0]?.b64_json, answer.data?.[1]?.b64_json);
  assert.deepEqual([answer.size, answer.background, answer.quality], ['1024x1536', 'transparent', 'medium']);
  assert.equal(answer.usage?.output_tokens, 2112);
});

test('generations: streamed, with partial images and [DONE]', async () => {
  const types: string[] = [];
  const stream = await client.images.generate({
    model: 'i',
    prompt: 'a door',
    stream: true,
    partial_images: 2,
    size: '1024x1024',
  });
  for await (const event of stream) types.push(event.type);
  assert.deepEqual(types, ['image_generation.partial_image', 'image_generation.partial_image', 'image_generation.completed']);
  const { text } = await ask(`${sim.url}/v1/images/generations`, { prompt: 'x', stream: true, size: '64x64' });
  assert.match(text, /^event: image_generation.completed\n/);
  assert.ok(text.endsWith('data: [DONE]\n\n'));
});

test('edits: one file, several, a mask, JSON references; the parts are in the journal', async () => {
  const file = (alpha: boolean, width = 40) => toFile(makePng({ width, height: 30 }, 9, alpha), 'a.png', { type: 'image/png' });
  const one = await client.images.edit({ model: 'i', prompt: 'x', image: await file(false), mask: await file(true) });
  assert.deepEqual(pngOf(one.data?.[0]?.b64_json), { width: 40, height: 30, alpha: false });
  assert.deepEqual(
    sim.requests[0]?.parts.filter(({ filename }) => filename !== undefined).map(({ name }) => name),
    ['image', 'mask'],
  );
  assert.equal(sim.requests[0]?.model, 'i');
  const two = await client.images.edit({ model: 'i', prompt: 'x', image: [await file(false), await file(false)] });
  assert.equal(two.usage?.input_tokens_details.image_tokens, 776);
  await assert.rejects(
    client.images.edit({ model: 'i', prompt: 'x', image: await file(false), mask: await file(true, 41) }),
    /mask size does not match/,
  );
  await assert.rejects(
    client.images.edit({ model: 'i', prompt: 'x', image: await file(false), mask: await file(false) }),
    /no alpha channel/,
  );
  await assert.rejects(
    client.images.edit({ model: 'i', prompt: 'x', image: await toFile(Buffer.from('no'), 'a.png') }),
    /Invalid image data/,
  );
  const url = `data:image/png;base64,${makePng({ width: 8, height: 8 }, 1, false).toString('base64')}`;
  const json = await ask(`${sim.url}/v1/images/edits`, {
    prompt: 'x',
    images: [{ image_url: url }, { file_id: 'file-1' }],
    stream: true,
  });
  assert.equal(dataOf(json.text)[0]?.type, 'image_edit.completed');
  assert.equal(
    (await ask(`${sim.url}/v1/images/edits`, { prompt: 'x', images: [{ image_url: url, file_id: 'f' }] })).status,
    400,
  );
});

test('images: unknown parameters are refused, faults reach the stream', async () => {
  const refused = await ask(`${sim.url}/v1/images/generations`, { prompt: 'x', response_format: 'url' });
  assert.equal(JSON.parse(refused.text).error.message, "Unknown parameter: 'response_format'.");
  sim.enqueue({ faults: [{ type: 'error-event', at: 0 }] });
  const failed = await ask(`${sim.url}/v1/images/generations`, { prompt: 'x', stream: true, size: '64x64' });
  assert.match(failed.text, /^event: error\n/);
});

test('the image router: one endpoint, chat’s usage names, its models', async () => {
  const body = {
    model: 'a/b',
    prompt: 'x',
    size: '64x32',
    input_references: [{ type: 'image_url', image_url: { url: 'https://a.example/x.png' } }],
  };
  for (const prefix of ['/v1', '/api/v1']) {
    const answer = JSON.parse((await ask(`${sim.url}${prefix}/images`, body)).text);
    assert.deepEqual(pngOf(answer.data[0].b64_json), { width: 64, height: 32, alpha: false });
    assert.equal(answer.usage.completion_tokens, 1120);
  }
  const stream = await ask(`${sim.url}/v1/images`, { ...body, stream: true });
  assert.equal(dataOf(stream.text)[0]?.created, clock / 1000);
  assert.equal((await ask(`${sim.url}/v1/images`, { ...body, mask: 'x' })).status, 400);
  assert.ok(JSON.parse((await ask(`${sim.url}/v1/images/models`)).text).data.length > 0);
});

test('ark: queued, running, succeeded with a link that opens; failure', async () => {
  const tasks = `${sim.url}/api/v3/contents/generations/tasks`;
  const body = { model: 's', content: [{ type: 'text', text: 'a cat' }], return_last_frame: true };
  const create = async () => JSON.parse((await ask(tasks, body)).text).id;
  const get = async (id: string) => JSON.parse((await ask(`${tasks}/${id}`)).text);
  const id = await create();
  assert.equal((await get(id)).status, 'queued');
  clock += 150;
  assert.equal((await get(id)).status, 'running');
  clock += 100;
  const done = await get(id);
  assert.equal(done.status, 'succeeded');
  const video = await ask(done.content.video_url);
  assert.deepEqual(
    [video.status, video.headers['content-type'], video.bytes.toString('latin1', 4, 8)],
    [200, 'video/mp4', 'ftyp'],
  );
  assert.ok(readPng((await ask(done.content.last_frame_url)).bytes) !== undefined);
  sim.enqueue({ video: { queueMs: 0, runMs: 0, outcome: 'failed', code: 'OutputVideoSensitiveContentDetected' } });
  assert.equal((await get(await create())).error.code, 'OutputVideoSensitiveContentDetected');
  assert.equal((await ask(tasks, { ...body, color: 'red' })).status, 400);
});

test('minimax v1: task, file, link; a refusal is an HTTP 200', async () => {
  const created = JSON.parse((await ask(`${sim.url}/v1/video_generation`, { model: 'h', prompt: 'a cat' })).text);
  assert.equal(created.base_resp.status_code, 0);
  const query = async () => JSON.parse((await ask(`${sim.url}/v1/query/video_generation?task_id=${created.task_id}`)).text);
  assert.equal((await query()).status, 'Queueing');
  clock += 300;
  const done = await query();
  assert.equal(done.status, 'Success');
  const { text } = await ask(`${sim.url}/v1/files/retrieve?file_id=${done.file_id}`);
  assert.ok(text.includes(`"file_id":${done.file_id},`));
  assert.equal((await ask(JSON.parse(text).file.download_url)).status, 200);
  const refused = await ask(`${sim.url}/v1/video_generation`, { model: 'h', prompt: 'a', duration: 7 });
  assert.deepEqual([refused.status, JSON.parse(refused.text).base_resp.status_code], [200, 2013]);
});

test('minimax v2: content, HTTP errors', async () => {
  const body = {
    model: 'MiniMax-H3',
    content: [{ type: 'text', text: 'a cat' }],
    resolution: '768P',
    duration: 6,
    ratio: '16:9',
  };
  const get = async (id: string) => JSON.parse((await ask(`${sim.url}/v2/query/video_generation/${id}`)).text).task;
  const id = JSON.parse((await ask(`${sim.url}/v2/video_generation`, body)).text).task_id;
  clock += 300;
  const task = await get(id);
  assert.equal(task.status, 'succeeded');
  assert.equal((await ask(task.content.url)).status, 200);
  const bad = await ask(`${sim.url}/v2/video_generation`, { ...body, ratio: 'adaptive' });
  assert.match(JSON.parse(bad.text).error.message, /\(2013\)$/);
});
