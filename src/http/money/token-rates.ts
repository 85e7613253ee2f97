/**
 * How fast each model of each Channel generates, and what a stream that its client left is charged by it. Reasoning is often out
 * of sight: who leaves one word before the usage report would otherwise get thirty thousand tokens for the price of the words.
 */
import { LRUCache } from 'lru-cache';
import type { SentRequest } from '../../codecs/canonical/request.ts';
import type { Usage } from '../../codecs/canonical/usage.ts';
import type { Model } from '../config/config.ts';
import { atMost } from '../lru.ts';
import { LARGEST_OUTPUT } from './estimate.ts';

/** Tokens a second, until an exchange was settled. */
const INITIAL_RATE = 50;
/** The weight of the newest exchange in the moving average. */
const WEIGHT = 0.1;
/**
 * One of fewer tokens weighs less: a few words take no time beside the wait for them, and anybody can ask for many such answers.
 */
const FULL_TOKENS = 256;
/** Shorter exchanges are no measure of a rate. */
const MIN_SAMPLE_MS = 1_000;
const MAX_KNOWN = 10_000;

export class TokenRates {
  readonly #rates = new LRUCache<string, number>(atMost(MAX_KNOWN));

  /**
   * An exchange that was settled by the upstream's own report: its output tokens, reasoning included, and its time from dispatch
   * on.
   */
  learn(channelId: string, model: string, tokens: number, ms: number): void {
    if (ms < MIN_SAMPLE_MS || tokens <= 0) return;
    const before = this.of(channelId, model);
    const weight = WEIGHT * Math.min(1, tokens / FULL_TOKENS);
    this.#rates.set(`${channelId} ${model}`, before + weight * ((tokens * 1_000) / ms - before));
  }

  /** Tokens a second. */
  of(channelId: string, model: string): number {
    return this.#rates.get(`${channelId} ${model}`) ?? INITIAL_RATE;
  }
}

/** Every text model may, unless the request or the configuration turned it off. */
export function mayReason({ reasoning }: SentRequest, model: Pick<Model, 'mayReason'>): boolean {
  return model.mayReason && reasoning?.effort !== 'none' && reasoning?.budget !== 0;
}

export interface Generating {
  /** Tokens a second. */
  readonly rate: number;
  /** From dispatch to the leaving. */
  readonly ms: number;
}

/**
 * The larger of what was counted and what was generated in that time, up to the request's cap. What is on top counts as
 * reasoning.
 */
export function withTime(counted: Usage, { rate, ms }: Generating, request: SentRequest, model: Model): Usage {
  const cap = Math.min(request.maxOutputTokens ?? Infinity, model.maxOutputTokens ?? LARGEST_OUTPUT);
  const generated = Math.min(Math.floor((rate * ms) / 1_000), cap);
  const hidden = generated - (counted.output ?? 0);
  if (hidden <= 0) return counted;
  return { ...counted, output: generated, reasoning: (counted.reasoning ?? 0) + hidden, estimated: true };
}
