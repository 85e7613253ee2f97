/** What every endpoint of one simulator shares: clock, ids, seals, memory, the model, the pictures, the tasks. */
import type { Knowledge } from './corpus.ts';
import type { ResponseMemory } from './response-memory.ts';
import type { Seals } from './seals.ts';
import type { VideoJobs } from './video-jobs.ts';

export interface SimulatorContext {
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  readonly mint: (prefix: string) => string;
  readonly seals: Seals;
  readonly memory: ResponseMemory;
  readonly knowledge: () => Knowledge;
  /** A picture for a prompt, base64 PNG. */
  readonly draw: (prompt: string) => string;
  readonly videos: VideoJobs;
  /** The simulator's own address, for result links. */
  readonly origin: () => string;
}
