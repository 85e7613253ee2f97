/**
 * Measures one case of the linearity law in this process, which does nothing else, and prints its times. Usage: node alone.ts
 * NAME [cost|past]
 */
import { LINEAR_CASES } from './all.ts';
import { costOf, verdictOf } from './growth.ts';
import { PLANTED } from './planted.ts';

const [, , name, what] = process.argv;
const named = ({ name: its }: { readonly name: string }): boolean => its === name;
// The gateway is loaded only for a case that asks one.
const found = [...LINEAR_CASES, ...PLANTED].find(named) ?? (await import('./http-cases.ts')).HTTP_CASES.find(named);
if (found === undefined) throw new Error(`no case is called ${name}`);
console.log(JSON.stringify(await (what === 'cost' ? costOf(found) : verdictOf(found, what === 'past'))));
