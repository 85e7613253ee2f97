/** Measures one case of the linearity law in this process, which does nothing else, and prints its times. Usage: node alone.ts NAME */
import { LINEAR_CASES } from './all.ts';
import { verdictOf } from './growth.ts';
import { PLANTED } from './planted.ts';

const name = process.argv[2];
const found = [...LINEAR_CASES, ...PLANTED].find((one) => one.name === name);
if (found === undefined) throw new Error(`no case is called ${name}`);
console.log(JSON.stringify(verdictOf(found)));
