/** Whether an upstream would take a request body: the simulator's own checks, which share no code with the codecs. */
import type { Dialect } from '../../src/codecs/canonical/dialect.ts';
import { chat } from '../../src/simulator/chat.ts';
import type { Dialect as Vendor, Turn } from '../../src/simulator/dialect.ts';
import { gemini } from '../../src/simulator/gemini.ts';
import { messages } from '../../src/simulator/messages.ts';
import { ResponseMemory } from '../../src/simulator/response-memory.ts';
import { responses } from '../../src/simulator/responses.ts';
import { VendorError } from '../../src/simulator/vendor-error.ts';
import { countingMint } from './wire.ts';

const VENDORS: Partial<Record<Dialect, Vendor>> = { chat, responses, messages, gemini };

/** What a vendor of the dialect would answer, or undefined when it takes the body. Every opaque value counts as its own. */
export function refusalOf(dialect: Dialect, body: string, model = 'up-model'): string | undefined {
  const vendor = VENDORS[dialect];
  if (vendor === undefined) throw new Error(`no vendor speaks ${dialect}`);
  const turn: Turn = {
    body: JSON.parse(body),
    model,
    createdS: 1_760_000_000,
    mint: countingMint(),
    seals: { issue: () => 'seal', accepts: () => true },
    memory: new ResponseMemory(10),
  };
  try {
    vendor.check(turn);
    return undefined;
  } catch (error) {
    if (error instanceof VendorError) return error.message;
    throw error;
  }
}
