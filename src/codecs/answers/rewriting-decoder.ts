/** A decoder whose steps are rewritten before anything else sees them. */
import type { Step } from '../canonical/event.ts';
import type { EventDecoder, Frame } from '../codec.ts';

export interface Rewriter {
  /** The answer has ended, whatever its upstream still sends. */
  readonly stopped?: boolean;
  step(step: Step): Step;
}

export class RewritingDecoder implements EventDecoder {
  readonly #decoder: EventDecoder;
  readonly #rewriter: Rewriter;
  readonly #decoded: Step[] = [];

  constructor(decoder: EventDecoder, rewriter: Rewriter) {
    this.#decoder = decoder;
    this.#rewriter = rewriter;
  }

  get ended(): boolean {
    return this.#rewriter.stopped === true || this.#decoder.ended;
  }

  get finished(): boolean {
    return this.#decoder.finished === true;
  }

  push(frame: Frame, out: Step[]): void {
    try {
      this.#decoder.push(frame, this.#decoded);
    } finally {
      this.#rewrite(out);
    }
  }

  end(out: Step[]): void {
    try {
      this.#decoder.end(this.#decoded);
    } finally {
      this.#rewrite(out);
    }
  }

  endInside(out: Step[]): boolean {
    try {
      return this.#decoder.endInside?.(this.#decoded) === true;
    } finally {
      this.#rewrite(out);
    }
  }

  /** What was decoded before a throw is good. */
  #rewrite(out: Step[]): void {
    for (const step of this.#decoded.splice(0)) {
      if (this.#rewriter.stopped === true) continue;
      const rewritten = this.#rewriter.step(step);
      out.push(step.acts === true ? { ...rewritten, acts: true } : rewritten);
    }
  }
}
