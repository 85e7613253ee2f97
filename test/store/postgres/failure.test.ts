/** What errors of the driver, the server and the operating system mean. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type FailureKind, failureKind, storeErrorOf } from '../../../src/store/postgres/failure.ts';
import { ProtocolViolation } from '../../../src/store/postgres/message-check.ts';
import { DatabaseFailure } from '../../../src/store/postgres/session.ts';

const withCode = (code: string, message = 'm', more: object = {}) => Object.assign(new Error(message), { code }, more);
const system = (code: string) => withCode(code, `write ${code}`, { syscall: 'write' });

const KINDS: readonly (readonly [string, unknown, FailureKind])[] = [
  ['serialization failure', withCode('40001'), 'again'],
  ['deadlock', withCode('40P01'), 'again'],
  ['backend ended', withCode('57P01'), 'lost'],
  ['server starts', withCode('57P03'), 'lost'],
  ['connection failure', withCode('08006'), 'lost'],
  ['reset', system('ECONNRESET'), 'lost'],
  ['broken pipe, whose code looks like an SQLSTATE', system('EPIPE'), 'lost'],
  ['ended without a word', new Error('Connection terminated unexpectedly'), 'lost'],
  ['no message of the protocol', new ProtocolViolation('m'), 'lost'],
  ['an answer to no question', new Error('Received unexpected dataRow message from backend.'), 'lost'],
  ['refused', system('ECONNREFUSED'), 'away'],
  ['no socket', system('ENOENT'), 'away'],
  ['no such host', system('ENOTFOUND'), 'away'],
  ['each address refused', new AggregateError([system('ECONNREFUSED')]), 'away'],
  ['silence', new Error('Query read timeout'), 'away'],
  ['silence at the start', new Error('timeout exceeded when trying to connect'), 'away'],
  ['a certificate that ran out', withCode('CERT_HAS_EXPIRED'), 'away'],
  ['a certificate of another host', withCode('ERR_TLS_CERT_ALTNAME_INVALID'), 'away'],
  ['a server without TLS', new Error('The server does not support SSL connections'), 'away'],
  ['full', withCode('53100'), 'store'],
  ['statement timeout', withCode('57014'), 'store'],
  ['lock timeout', withCode('55P03'), 'store'],
  ['read-only', withCode('25006'), 'store'],
  ['wrong password', withCode('28P01'), 'store'],
  ['no right to a table', withCode('42501'), 'store'],
  ['no such table', withCode('42P01'), 'store'],
  ['a prepared statement that a pooler lost', withCode('26000'), 'store'],
  ['what no version of ours knows', withCode('ZZ999'), 'store'],
  ['twice the same', withCode('23505'), 'row'],
  ['text that is none', withCode('22021'), 'row'],
  ['too large for an index', withCode('54000'), 'row'],
  ['a bug', new TypeError('x is not a function'), 'row'],
  ['no error at all', 'text', 'row'],
];

test('what fails to connect says nothing about a row', () => {
  const words = new Error('SASL: SCRAM-SERVER-FIRST-MESSAGE: client password must be a string');
  assert.equal(DatabaseFailure.toConnect(words).kind, 'away');
  assert.equal(DatabaseFailure.toConnect(withCode('28P01')).kind, 'store');
});

for (const [name, error, kind] of KINDS) test(`${name}: ${kind}`, () => assert.equal(failureKind(error), kind));

test('the codes that a caller sees', () => {
  const codes = ['28P01', '3D000', '42501', '25006', '53100', '22003', '23505', '54000', '57014'].map(
    (code) => storeErrorOf(withCode(code), 'x').code,
  );
  assert.deepEqual(codes, [
    'access_denied',
    'bad_url',
    'access_denied',
    'read_only',
    'disk_full',
    'amount_out_of_range',
    'corrupt',
    'corrupt',
    'unavailable',
  ]);
});
