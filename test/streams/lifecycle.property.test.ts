import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { advance, illegal, LifecycleError, type Transitions } from '../../src/streams/lifecycle.ts';
import { mermaid } from '../support/mermaid.ts';

const STATES = ['idle', 'open', 'ended'] as const;
const EVENTS = ['start', 'delta', 'end', 'fail'] as const;
type State = (typeof STATES)[number];
type Event = (typeof EVENTS)[number];

const TABLE = {
  idle: { start: 'open', delta: illegal, end: illegal, fail: 'ended' },
  open: { start: illegal, delta: 'open', end: 'ended', fail: 'ended' },
  ended: { start: illegal, delta: illegal, end: illegal, fail: illegal },
} as const satisfies Transitions<State, Event>;

const anyTable: fc.Arbitrary<Transitions<State, Event>> = fc.record({
  idle: fc.record({ start: cell(), delta: cell(), end: cell(), fail: cell() }),
  open: fc.record({ start: cell(), delta: cell(), end: cell(), fail: cell() }),
  ended: fc.record({ start: cell(), delta: cell(), end: cell(), fail: cell() }),
});

function cell(): fc.Arbitrary<State | null> {
  return fc.constantFrom(...STATES, illegal);
}

test('advance agrees with every cell of any table', () => {
  fc.assert(
    fc.property(anyTable, (table) => {
      for (const state of STATES) {
        for (const event of EVENTS) {
          const target = table[state][event];
          if (target !== illegal) {
            assert.equal(advance('it', table, state, event), target);
            continue;
          }
          assert.throws(
            () => advance('it', table, state, event),
            (error) => {
              assert.ok(error instanceof LifecycleError);
              assert.deepEqual([error.subject, error.state, error.event], ['it', state, event]);
              assert.deepEqual(
                error.legal,
                EVENTS.filter((name) => table[state][name] !== illegal),
              );
              return true;
            },
          );
        }
      }
    }),
  );
});

test('a refused event changes nothing: a walk with refusals ends where the walk without them ends', () => {
  fc.assert(
    fc.property(anyTable, fc.array(fc.constantFrom(...EVENTS)), (table, events) => {
      let walked: State = 'idle';
      for (const event of events) {
        try {
          walked = advance('it', table, walked, event);
        } catch (error) {
          assert.ok(error instanceof LifecycleError);
        }
      }
      const expected = events.reduce<State>((state, event) => table[state][event] ?? state, 'idle');
      assert.equal(walked, expected);
    }),
  );
});

test('a table prints as a state diagram', () => {
  assert.equal(
    mermaid<State, Event>(TABLE),
    [
      'stateDiagram-v2',
      '    [*] --> idle',
      '    idle --> open: start',
      '    idle --> ended: fail',
      '    open --> open: delta',
      '    open --> ended: end, fail',
      '    ended --> [*]',
      '',
    ].join('\n'),
  );
});

test('a refusal says what was asked, in which state, and what would have been legal', () => {
  const table = {
    open: { close: 'closed', turn: 'open', lose: illegal },
    closed: { close: illegal, turn: illegal, lose: illegal },
  } as const;
  const refused = (state: 'open' | 'closed', event: 'close' | 'lose'): string => {
    try {
      return advance('door', table, state, event);
    } catch (thrown) {
      return thrown instanceof LifecycleError ? thrown.message : String(thrown);
    }
  };
  assert.equal(refused('open', 'lose'), 'door: lose is illegal in state open (legal: close, turn)');
  assert.equal(refused('closed', 'close'), 'door: close is illegal in state closed (legal: nothing)');
});
