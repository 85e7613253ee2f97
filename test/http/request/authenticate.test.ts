/** Which key a request carries, by its headers alone, and from where it may be used. */
import assert from 'node:assert/strict';
import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { test } from 'node:test';
import { authenticate } from '../../../src/http/request/authenticate.ts';
import { headerValues } from '../../../src/http/request/header-values.ts';
import { clientRequestId } from '../../../src/http/request/request-id.ts';
import { createFakeClock } from '../../support/fake-clock.ts';
import { memoryStore } from '../../support/memory-store.ts';
import { KEY } from '../../support/test-gateway.ts';

const store = memoryStore();
store.addKey(KEY);
const known = await store.keys.authenticate(KEY, 0);
assert.ok(known.ok);
const { value: principal } = known;

type Line = readonly [name: string, value: string];

function requestWith(...lines: readonly Line[]): IncomingMessage {
  const request = new IncomingMessage(new Socket());
  request.rawHeaders = lines.flat();
  return request;
}

/** The token that is looked up; undefined where none is. */
async function tokenOf(...lines: readonly Line[]): Promise<string | undefined> {
  let asked: string | undefined;
  const keys = {
    ...store.keys,
    authenticate: async (token: string) => {
      asked = token;
      return { ok: true as const, value: principal };
    },
  };
  const found = authenticate(requestWith(...lines), '::1', keys, createFakeClock());
  if (asked === undefined) await assert.rejects(found, { code: 'unauthorized' });
  else assert.equal(await found, principal);
  return asked;
}

test('a key is one word of what is printed, in either header or the same in both', async () => {
  assert.equal(await tokenOf(['Authorization', 'Bearer a']), 'a');
  assert.equal(await tokenOf(['AUTHORIZATION', '  bEARER   a  ']), 'a');
  assert.equal(await tokenOf(['X-Api-Key', ' a ']), 'a');
  assert.equal(await tokenOf(['x-api-key', 'a'], ['authorization', 'Bearer a'], ['x-api-key', 'a']), 'a');
  assert.equal(await tokenOf(['x-api-key', '!~']), '!~');
  for (const value of ['a b', 'a\tb', 'ä', '\x7f', '', ' ']) assert.equal(await tokenOf(['x-api-key', value]), undefined, value);
  for (const value of ['Bearer', 'Bearer ', 'Bearera', 'Basic a', 'a'])
    assert.equal(await tokenOf(['authorization', value]), undefined, value);
});

test('two keys that differ are none, wherever they stand', async () => {
  assert.equal(await tokenOf(['x-api-key', 'a'], ['authorization', 'Bearer b']), undefined);
  assert.equal(await tokenOf(['x-api-key', 'a'], ['x-api-key', 'b']), undefined);
  assert.equal(await tokenOf(['authorization', 'Bearer a'], ['authorization', 'Bearer b']), undefined);
  assert.equal(
    await tokenOf(['authorization', 'Basic b'], ['authorization', 'Bearer a']),
    'a',
    'another scheme is somebody else’s',
  );
});

test('a key of more than 512 bytes is not looked up', async () => {
  const longest = 'x'.repeat(512);
  assert.equal(await tokenOf(['x-api-key', longest]), longest);
  assert.equal(await tokenOf(['x-api-key', `${longest}x`]), undefined);
});

test('a key with a list of addresses is used from those alone', async () => {
  const from = (ips: readonly string[] | undefined, ip: string) => {
    const { ips: _, ...key } = principal.key;
    const found = { ...principal, key: ips === undefined ? key : { ...key, ips } };
    const keys = { ...store.keys, authenticate: async () => ({ ok: true as const, value: found }) };
    return authenticate(requestWith(['x-api-key', 'a']), ip, keys, createFakeClock());
  };
  assert.ok(await from(undefined, '10.0.0.1'));
  await assert.rejects(from([], '10.0.0.1'), { code: 'ip_not_allowed' }, 'no address is not every address');
  assert.ok(await from(['10.0.0.0/31'], '10.0.0.1'));
  for (const ip of ['10.0.0.2', 'unknown', '']) await assert.rejects(from(['10.0.0.0/31'], ip), { code: 'ip_not_allowed' }, ip);
});

test('every value of a header is read, by its whole name in any case', () => {
  const request = requestWith(['A', '1'], ['ab', '2'], ['a', '3'], ['b', 'a']);
  assert.deepEqual(headerValues(request, 'a'), ['1', '3']);
  assert.deepEqual(headerValues(request, 'c'), []);
});

test('a client’s name for its request is repeated where it is a short plain word', () => {
  const idOf = (id: string) => {
    const request = requestWith();
    request.headers = { 'x-request-id': id };
    return clientRequestId(request);
  };
  for (const id of ['a', 'A_1.b:c-d', 'x'.repeat(128)]) assert.equal(idOf(id), id);
  for (const id of ['', 'a b', 'a/b', 'ä', 'a\n', 'x'.repeat(129)]) assert.equal(idOf(id), undefined, id);
});
