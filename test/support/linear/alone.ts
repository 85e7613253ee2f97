/** Measures one case of the linearity law in this process, which does nothing else, and prints it. Usage: node alone.ts NAME COUNT */
import { LINEAR_CASES } from './all.ts';
import { growthOfCase } from './growth.ts';

const [, , name, count] = process.argv;
const found = LINEAR_CASES.find((one) => one.name === name);
if (found === undefined) throw new Error(`no case is called ${name}`);
console.log(JSON.stringify(growthOfCase(found, Number(count))));
