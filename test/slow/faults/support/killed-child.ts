/**
 * One gateway of the law, in a process of its own that may be killed at any point. Usage: node killed-child.ts ENGINE DURABILITY
 * PLACE [POINT]. Its first line on standard output is `{ url, key, secret }`; when standard input ends it prints the points it
 * has passed and stops.
 */
import { once } from 'node:events';
import type { EngineName } from '../../../support/engines.ts';
import { exchangeRig, type Place } from '../../../support/exchange-rig.ts';

export interface Started {
  readonly url: string;
  readonly keyId: string;
  readonly secret: string;
}

const [, , engine, durability, place = '', point] = process.argv;
const rig = await exchangeRig(engine as EngineName, durability as 'batched' | 'strict', [], JSON.parse(place) as Place);
const { key, secret } = await rig.newKey();
await rig.store.settlements.flush();
rig.injector.start(point === undefined ? new Map() : new Map([[point, 'kill']]));
console.log(JSON.stringify({ url: rig.url, keyId: key.id, secret } satisfies Started));
process.stdin.resume();
await once(process.stdin, 'end');
await rig.pass(() => rig.gateway.inFlight.count > 0 || rig.injector.outstanding > 0, 60);
console.log(JSON.stringify([...rig.injector.points.keys()]));
rig.injector.stop();
await rig.close();
process.exit();
