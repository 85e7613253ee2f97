import assert from 'node:assert/strict';
import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { test } from 'node:test';
import fc from 'fast-check';
import { type OpenResponse, OpenResponses } from '../../../src/http/server/open-responses.ts';

test('open responses are a set: whatever was added and not removed is in it, and places are used again', () => {
  fc.assert(
    fc.property(fc.array(fc.nat({ max: 9 }), { maxLength: 60 }), (steps) => {
      const open = new OpenResponses();
      const places = new Map<OpenResponse, number>();
      let most = 0;
      for (const step of steps) {
        const [leaving] = [...places].slice(step, step + 1);
        if (leaving === undefined) {
          const response = new ServerResponse(new IncomingMessage(new Socket()));
          const one = { response, gone: new AbortController() };
          places.set(one, open.add(one));
        } else {
          open.remove(leaving[1]);
          places.delete(leaving[0]);
        }
        most = Math.max(most, places.size);
        assert.equal(open.size, places.size);
        assert.deepEqual(new Set(open.all()), new Set(places.keys()));
        assert.equal(new Set(places.values()).size, places.size);
        assert.ok([...places.values()].every((place) => place < most));
      }
    }),
  );
});

test('the responses of one connection are found without a look at any other', () => {
  const open = new OpenResponses();
  let looks = 0;
  const on = (socket: Socket): OpenResponse => {
    const response = new ServerResponse(new IncomingMessage(socket));
    const { req } = response;
    Object.defineProperty(response, 'req', {
      get() {
        looks += 1;
        return req;
      },
    });
    return { response, gone: new AbortController() };
  };
  for (let n = 0; n < 10_000; n++) open.add(on(new Socket()));
  const [socket, empty] = [new Socket(), new Socket()];
  const pipelined = [on(socket), on(socket)];
  const places = pipelined.map((one) => open.add(one));
  looks = 0;
  assert.deepEqual(open.on(socket), pipelined);
  assert.deepEqual(open.on(empty), []);
  open.remove(places[0] ?? assert.fail());
  assert.deepEqual(open.on(socket), pipelined.slice(1));
  open.remove(places[1] ?? assert.fail());
  assert.deepEqual(open.on(socket), []);
  assert.ok(looks <= 2, `${looks} looks`);
});
