/**
 * A charge explained: each line as count × rate = amount, flags in words, and whose report it rests on. Pure: all of it is in the
 * row.
 */
import { withoutLastZeros } from './decimal.ts';
import type { Charge, ChargeLine } from './charge.ts';
import { formatUsd } from './money.ts';
import type { RequestLogEntry } from './request-log.ts';

export interface ExplainedLine {
  readonly item: string;
  /** The class whose rate was used, where it is not the item's own. */
  readonly billedAs?: string;
  readonly quantity: number;
  /** US dollars per `per`. */
  readonly rate: string;
  readonly per: ChargeLine['per'];
  readonly multiplier?: string;
  /** US dollars, exact. */
  readonly amount: string;
  /** Whose rate it is, as the upstream names it, where it is not the model's of the charge. */
  readonly model?: string;
}

export interface ExplainedCharge {
  /** US dollars: the sum of the lines, rounded down to billionths. */
  readonly total: string;
  /** The logical model at whose price it is charged. */
  readonly model: string;
  /**
   * `reported`: the upstream's own counts. `estimated`: at least one count is the gateway's. `admission`: nobody could count it,
   * so it is what was set aside. `none`: it cost nothing.
   */
  readonly basis: 'reported' | 'estimated' | 'admission' | 'none';
  /** The attempt whose usage it is. */
  readonly attempt?: { readonly number: number; readonly of: number; readonly channelId: string; readonly upstreamModel: string };
  readonly lines: readonly ExplainedLine[];
  readonly flags: readonly { readonly flag: string; readonly meaning: string }[];
}

type Row = Pick<RequestLogEntry, 'model' | 'servedModel' | 'channelId' | 'charge' | 'attempts'>;

export function explainCharge({ model, servedModel, channelId, charge, attempts }: Row): ExplainedCharge {
  // Where none was answered, it is what the last failure reported.
  const index = channelId === undefined ? attempts.findLastIndex(({ usage }) => usage !== undefined) : attempts.length - 1;
  const attempt = charge === undefined ? undefined : attempts[index];
  return {
    total: formatUsd(charge?.total ?? 0n),
    model: (channelId === undefined ? attempt?.model : servedModel) ?? model,
    basis: basisOf(charge),
    ...(attempt === undefined
      ? {}
      : {
          attempt: {
            ...{ number: index + 1, of: attempts.length },
            ...{ channelId: attempt.channelId, upstreamModel: attempt.upstreamModel },
          },
        }),
    lines: charge?.lines.map(explainedLine) ?? [],
    flags: charge?.flags.map((flag) => ({ flag, meaning: meaningOf(flag) })) ?? [],
  };
}

function basisOf(charge: Charge | undefined): ExplainedCharge['basis'] {
  if (charge === undefined) return 'none';
  if (!charge.flags.includes('estimated')) return 'reported';
  return charge.lines.length === 0 && charge.total > 0n ? 'admission' : 'estimated';
}

function explainedLine({ item, billedAs, quantity, rate, per, multiplier, amount, model }: ChargeLine): ExplainedLine {
  return {
    item,
    ...(billedAs === undefined ? {} : { billedAs }),
    ...{ quantity, rate: formatUsd(rate), per },
    ...(multiplier === undefined ? {} : { multiplier }),
    amount: exactUsd(amount),
    ...(model === undefined ? {} : { model }),
  };
}

/** Millionths of a nano-dollar. */
const DIGITS = 15;

/** An amount in millionths of a nano-dollar, as US dollars with at least two digits after the point. */
export function exactUsd(amount: bigint): string {
  const digits = amount.toString().padStart(DIGITS + 1, '0');
  const fraction = withoutLastZeros(digits.slice(-DIGITS)).padEnd(2, '0');
  return `${digits.slice(0, -DIGITS)}.${fraction}`;
}

const WORDS: Readonly<Record<string, string>> = {
  cache_write_unsplit: 'the upstream did not say how long the cache lives: billed as five minutes',
  long_context: 'the input is longer than the threshold of the long-context price',
  estimated: 'at least one count is the gateway’s own: the upstream did not report it',
  overflow: 'the sum is larger than the largest amount that can be kept',
  unknown_service_tier: 'served in a tier without a price: billed as standard',
  unknown_speed: 'served at a speed without a price: billed as standard',
  unknown_geo: 'served in a region without a price: billed as standard',
  contradictory_usage: 'the report has more cached tokens than input: each count is billed as it was reported',
  fallback_credit: 'the vendor charged less: a credit for a refused request was redeemed',
};

/** Flags with a name behind a colon. */
const NAMED: Readonly<Record<string, (name: string) => string>> = {
  service_tier: (name) => `served in the tier ${name}, at its price`,
  speed: (name) => `served at the speed ${name}, at its price`,
  geo: (name) => `served in the region ${name}, at its price`,
  unpriced: (name) => `${name} has no price: not billed`,
  no_rate: (name) => `${name} has no price: billed at the rate of another class`,
  unpriced_model: (name) => `the model ${name} has no price: billed as the model that was asked`,
  unpriced_pass: (name) => `the answer had a pass of the kind ${name}, which no price of ours knows: not billed`,
  invalid_usage: (name) => `the count of ${name} is none: not billed`,
  unseen: (name) => `the request had ${name}, which changes the vendor’s price, and no answer tells by how much`,
};

function meaningOf(flag: string): string {
  const colon = flag.indexOf(':');
  if (colon < 0) return WORDS[flag] ?? flag;
  return NAMED[flag.slice(0, colon)]?.(flag.slice(colon + 1)) ?? flag;
}

const PER = { million: 'a million', thousand: 'a thousand', piece: 'each' } as const;
const BASIS = {
  reported: 'as the upstream reported',
  estimated: 'estimated',
  admission: 'nobody could count it: the estimate of its admission',
  none: 'nothing was used',
} as const;

/** The same in lines of text, without indentation. */
export function chargeLines({ total, model, basis, attempt, lines, flags }: ExplainedCharge): string[] {
  const whose =
    attempt === undefined ? '' : `, attempt ${attempt.number} of ${attempt.of} (${attempt.channelId} ${attempt.upstreamModel})`;
  return [
    `charge $${total} at the price of ${model || '-'}, ${BASIS[basis]}${whose}`,
    ...lines.map(({ item, billedAs, quantity, rate, per, multiplier, amount, model: other }) => {
      const as = billedAs === undefined ? '' : ` (as ${billedAs})`;
      const times = multiplier === undefined ? '' : ` × ${multiplier}`;
      return `  ${item}${as}: ${quantity} × $${rate} ${PER[per]}${times} = $${amount}${other === undefined ? '' : ` (${other})`}`;
    }),
    ...flags.map(({ flag, meaning }) => `  ${flag}: ${meaning}`),
  ];
}
