/** Embeddings without sockets: what is read of a request, and what an upstream's list of vectors becomes. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { GatewayError } from '../../../src/codecs/canonical/error.ts';
import { isObject, type JsonObject, parseJson } from '../../../src/codecs/canonical/json.ts';
import {
  decodeEmbeddingAnswer,
  decodeEmbeddingAnswerInSteps,
  encodeEmbeddingRequest,
  readEmbeddingRequest,
} from '../../../src/codecs/embeddings/index.ts';

const read = (body: JsonObject) => readEmbeddingRequest(JSON.stringify(body), body);
const BASE = { model: 'm', input: 'x' };

describe('an embedding request', () => {
  it('says nothing with null, and asks for no stream with false', () => {
    const plain = read(BASE);
    for (const said of [{ stream: null }, { stream: false }, { dimensions: null }, { encoding_format: null }]) {
      const { text: _text, unsent: _unsent, ...rest } = read({ ...BASE, ...said });
      assert.deepEqual(
        rest,
        { model: plain.model, count: 1, tokens: 1, isTokenIds: false, format: 'float' },
        JSON.stringify(said),
      );
    }
  });

  it('is refused where a member is of another kind', () => {
    for (const [body, param] of [
      [{ ...BASE, model: 5 }, 'model'],
      [{ ...BASE, model: null }, 'model'],
      [{ ...BASE, stream: 0 }, 'stream'],
      [{ ...BASE, dimensions: '8' }, 'dimensions'],
      [{ ...BASE, dimensions: 1.5 }, 'dimensions'],
      [{ ...BASE, dimensions: -1 }, 'dimensions'],
      [{ ...BASE, encoding_format: 5 }, 'encoding_format'],
      [{ ...BASE, input: null }, 'input'],
    ] as const) {
      assert.throws(
        () => read(body),
        (error) => error instanceof GatewayError && error.status === 400 && error.param === param,
        JSON.stringify(body),
      );
    }
    assert.equal(read({ ...BASE, input: ['', 'a'], dimensions: 1 }).count, 2);
  });

  it('goes on as its own text, without a stream', () => {
    const text = '{ "input":["a"],"stream":false, "model":"m", "dimensions":8.0 }';
    const json = parseJson(text);
    assert.ok(isObject(json));
    const sent = encodeEmbeddingRequest(readEmbeddingRequest(text, json), 'up');
    assert.equal(sent, '{ "input":["a"],"model":"up", "dimensions":8.0 }');
  });
});

describe('a list of vectors', () => {
  const vector = [1, -2.5];
  const base64 = Buffer.from(Float32Array.from(vector).buffer).toString('base64');
  const usage = { prompt_tokens: 3, total_tokens: 3 };
  const answer = (text: string, count: number, format = 'float') =>
    decodeEmbeddingAnswer(text, read({ ...BASE, input: Array.from({ length: count }, String), encoding_format: format })).body;
  const list = (...data: readonly unknown[]) => JSON.stringify({ object: 'list', data, model: 'm', usage });
  const entry = (index: unknown, embedding: unknown) => ({ object: 'embedding', index, embedding });

  it('is not touched where it is what was asked for', () => {
    for (const [embedding, format] of [
      [vector, 'float'],
      [base64, 'base64'],
    ] as const) {
      const text = `${list(entry(0, embedding)).slice(0, -1)}, "future": 1.0 }`;
      assert.equal(answer(text, 1, format), text);
    }
  });

  it('is charged by the input that its server reports under the name of the responses API', () => {
    const text = JSON.stringify({ data: [{ index: 0, embedding: vector }], model: 'm', usage: { input_tokens: 7 } });
    const { usage: reported, body } = decodeEmbeddingAnswer(text, read({ ...BASE, encoding_format: 'float' }));
    assert.equal(reported?.input, 7);
    assert.deepEqual(JSON.parse(body).usage, { input_tokens: 7, prompt_tokens: 7, total_tokens: 7 });
  });

  it('says what it is where its server does not', () => {
    const bare = JSON.stringify({ data: [{ index: 0, embedding: vector }], model: 'm', usage });
    assert.deepEqual(JSON.parse(answer(bare, 1)), JSON.parse(list(entry(0, vector))));
  });

  it('of thousands is read in steps, each as long as one vector takes', () => {
    const count = 1_000;
    const long = Array.from({ length: 1_536 }, (_, at) => Math.sin(at));
    const text = list(...Array.from({ length: count }, (_, at) => entry(at, long)));
    const steps = decodeEmbeddingAnswerInSteps(text, read({ ...BASE, input: Array.from({ length: count }, String) }));
    let taken = 0;
    for (let step = steps.next(); ; step = steps.next(), taken += 1) {
      if (step.done !== true) continue;
      assert.equal(step.value.body, text);
      break;
    }
    // It is looked through before, in steps of megabytes.
    assert.ok(taken >= count && taken <= count + 20, `${taken} steps`);
  });

  it('is refused where what stands between its elements is no JSON', () => {
    const whole = list(entry(0, vector), entry(1, vector));
    assert.equal(answer(whole, 2), whole);
    for (const [from, to] of [
      ['},{', '}{'],
      ['},{', '},,{'],
      ['},{', '};{'],
      ['}]', '},]'],
      ['[{', '[,{'],
      ['}]', '}'],
      ['-2.5]', '-2.5'],
    ] as const) {
      const broken = whole.replace(from, to);
      assert.throws(
        () => answer(broken, 2),
        (error) => error instanceof GatewayError && error.code === 'upstream_error',
        broken,
      );
    }
  });

  it('is written in the other encoding where an upstream ignored what was asked', () => {
    assert.equal(answer(list(entry(0, base64)), 1), list(entry(0, vector)));
    assert.equal(answer(list(entry(0, vector)), 1, 'base64'), list(entry(0, base64)));
  });

  it('has its padding, without which the decoders of some languages refuse it', () => {
    const bare = Buffer.from(Float32Array.from([1]).buffer)
      .toString('base64')
      .replace(/=+$/, '');
    for (const padding of ['', '=', '=='])
      assert.equal(answer(list(entry(0, bare + padding)), 1, 'base64'), list(entry(0, `${bare}==`)));
  });

  it('stands in the order of the inputs, by what its entries say of their places', () => {
    for (const [indices, order] of [
      [
        [0, 1, 2],
        [0, 1, 2],
      ],
      [
        [2, 0, 1],
        [1, 2, 0],
      ],
      [
        [7, 5, 6],
        [1, 2, 0],
      ],
      [
        [0, 0, 0],
        [0, 1, 2],
      ],
      [
        [undefined, undefined, undefined],
        [0, 1, 2],
      ],
      [
        [undefined, 1, 2],
        [0, 1, 2],
      ],
      [
        [1, undefined, 2],
        [1, 0, 2],
      ],
      [
        [null, 2, 1],
        [0, 2, 1],
      ],
    ] as const) {
      const data = indices.map((index, at) => entry(index, [at + 1]));
      const wanted = order.map((at, index) => entry(index, [at + 1]));
      assert.deepEqual(JSON.parse(answer(list(...data), 3)).data, wanted, JSON.stringify(indices));
    }
  });

  it('is no answer where it holds no vector for an input', () => {
    const isFault = (error: unknown) => error instanceof GatewayError && error.blame === 'upstream' && error.status === 502;
    for (const [text, count] of [
      [list(null), 1],
      [list([1]), 1],
      [list(entry(0, [])), 1],
      [list(entry(0, '')), 1],
      [list(entry(0, 'A')), 1],
      [list(entry(0, 'AAAA====')), 1],
      ...[Number.NaN, Number.POSITIVE_INFINITY].map(
        (none) => [list(entry(0, Buffer.from(Float32Array.from([1, none]).buffer).toString('base64'))), 1] as const,
      ),
      [list(entry(0, [1]), entry(1, [1])), 1],
      [list(entry(0, [1]), entry(0, [1]), entry(1, [1])), 3],
      [list(entry(0, [1]), entry(3, [1]), entry(1, [1])), 3],
      [list(entry('0', [1]), entry(1, [1])), 2],
      [list(entry(undefined, [1]), entry(2, [1])), 2],
    ] as const) {
      for (const format of ['float', 'base64']) assert.throws(() => answer(text, count, format), isFault, text);
    }
  });

  it('is refused where a vector is longer than any model makes: it is read in one turn', () => {
    const numbers = (count: number) => list(entry(0, Array<number>(count).fill(-0.0123456789)));
    assert.equal(JSON.parse(answer(numbers(100_000), 1)).data[0].embedding.length, 100_000);
    assert.throws(() => answer(numbers(200_000), 1), /longer than any vector/);
    assert.throws(() => answer(list(entry(0, 'AACAPwAA'.repeat(300_000))), 1), /longer than any vector/);
  });

  it('is an error where it says one, of the kind that it says', () => {
    const refused = JSON.stringify({ ...JSON.parse(list(entry(0, [1]))), error: { message: 'too long', code: 400 } });
    assert.throws(
      () => answer(refused, 1),
      (error) => error instanceof GatewayError && error.details.upstream?.status === 400,
    );
    assert.equal(JSON.parse(answer(JSON.stringify({ ...JSON.parse(list(entry(0, [1]))), error: null }), 1)).data.length, 1);
  });
});
