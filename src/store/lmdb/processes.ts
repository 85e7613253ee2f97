/** The registrations of processes on LMDB. */
import type { Registration } from '../books/books.ts';
import type { Registry } from '../processes.ts';
import { registrationOf } from './books.ts';
import type { Environment } from './environment.ts';
import type { Tables } from './tables.ts';

export function createRegistry(environment: Environment): Registry {
  const { options } = environment;
  const { clock, process: self } = options;
  const registration = (tables: Tables, id: string): Registration | undefined => registrationOf(tables, id, clock.now());

  return {
    options,
    requireHealth: () => environment.requireHealth(),
    follow: (rule) => environment.follow(rule),

    beat: (id) =>
      environment.transact((work) => {
        work.put(work.tables.processes, id, { id, host: self.host, pid: self.pid, heartbeatAtMs: clock.now() });
      }),

    find: (id) => environment.read((tables) => registration(tables, id)),

    ofOpenExchanges: () =>
      environment.read((tables) => new Map(processesOfExchanges(tables).map((id) => [id, registration(tables, id)]))),

    async sweep(isAlive) {
      const dead = (tables: Tables): string[] =>
        [...tables.processes.getKeys()].filter((id) => {
          const found = registration(tables, id);
          return found !== undefined && !isAlive(id, found);
        });
      if ((await environment.read(dead)).length === 0) return;
      await environment.transact((work) => {
        for (const id of dead(work.tables)) work.remove(work.tables.processes, id);
      });
    },
  };
}

/** The distinct processes that have exchanges open, by jumping from one to the next. */
function processesOfExchanges(tables: Tables): string[] {
  const found: string[] = [];
  let start = '';
  for (;;) {
    const [next] = [...tables.openExchanges.getKeys({ start: [start, '\uffff'], limit: 1 })];
    if (next === undefined) return found;
    [start] = next;
    found.push(start);
  }
}
