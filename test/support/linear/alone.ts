/**
 * Measures one case of the linearity law in this process, which does nothing else, and prints its times. Usage: node alone.ts
 * NAME [cost|past]
 */
import { LINEAR_CASES } from './all.ts';
import { costOf, verdictOf } from './growth.ts';
import { PLANTED } from './planted.ts';

const [, , name, what] = process.argv;
const found = [...LINEAR_CASES, ...PLANTED].find((one) => one.name === name);
if (found === undefined) throw new Error(`no case is called ${name}`);
console.log(JSON.stringify(what === 'cost' ? costOf(found) : verdictOf(found, what === 'past')));
