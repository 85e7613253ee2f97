/**
 * Members of a text request that change what an upstream charges, where the model has no price for that. With `ledger.unpriced:
 * "refuse"` such a request is refused before anything is sent; otherwise its charge is flagged, from the answer where the answer
 * tells, else from here.
 */
import { GatewayError } from '../../codecs/canonical/error.ts';
import { isObject, type JsonObject, type JsonValue } from '../../codecs/canonical/json.ts';
import type { CanonicalRequest } from '../../codecs/canonical/request.ts';
import type { CodecSet } from '../../codecs/codec-set.ts';
import { STANDARD } from '../../store/charge.ts';
import type { Rates, TokenClass } from '../../store/prices.ts';
import type { Channel, Config, Model } from '../config/config.ts';
import { ratesOfUpstreamModel } from './bill.ts';
import { REQUEST_MEMBERS, type RequestRule } from './price-members.ts';

export interface MemberPolicy {
  readonly codecs: CodecSet;
  /** Those that may be asked: members of another dialect never reach them. */
  readonly channels: readonly Channel[];
  readonly model: string;
  readonly rates: Rates | undefined;
  /** Whether a model that an upstream names has a price. */
  readonly hasPrice: (upstreamModel: string) => boolean;
  readonly unpriced: 'flag' | 'refuse';
}

/** Of a request for this model that these Channels may be asked. */
export function memberPolicy(
  codecs: CodecSet,
  config: Config,
  { name, rates }: Model,
  channels: readonly Channel[],
): MemberPolicy {
  const ratesOf = ratesOfUpstreamModel(config, channels);
  const hasPrice = (upstreamModel: string): boolean => ratesOf(upstreamModel) !== undefined;
  return { codecs, channels, model: name, rates, unpriced: config.unpriced, hasPrice };
}

/** Returns flags for the charge: what no answer tells. Throws `model_pricing_required` naming the member. */
export function checkMembers(request: CanonicalRequest, policy: MemberPolicy): readonly string[] {
  const { dialect, json } = request;
  if (dialect !== 'chat' && dialect !== 'responses' && dialect !== 'messages') return [];
  const types = policy.codecs.typesOf(dialect);
  if (policy.rates === undefined || !policy.channels.some(({ type }) => types.has(type))) return [];
  const flags: string[] = [];
  const rules = REQUEST_MEMBERS[dialect];
  for (const name of Object.keys(json)) {
    const rule = Object.hasOwn(rules, name) ? rules[name] : undefined;
    const value = json[name];
    if (rule === undefined || rule === 'none' || rule === 'counted' || value === undefined || value === null) continue;
    if (policy.unpriced === 'refuse') {
      const what = unpricedIn(rule, name, value, policy, policy.rates);
      if (what !== undefined) throw refusal(policy.model, what, name);
    }
    if (isUnseen(rule, value)) flags.push(`unseen:${name}`);
  }
  if (policy.unpriced === 'refuse') checkLifetimes(json, policy, policy.rates);
  return flags;
}

function refusal(model: string, what: string, param: string): GatewayError {
  return new GatewayError('model_pricing_required', `The model ${model} has no price for ${what}.`, { param });
}

/** What an answer does not tell: calls that it does not count, what a router does, and who else is billed. */
function isUnseen(rule: RequestRule, value: JsonValue): boolean {
  return (
    rule === 'calls' ||
    (rule === 'router' && asksAny(value)) ||
    (rule === 'unseen' && isObject(value) && value['bill_to'] === 'user_profile')
  );
}

/** Clients that ask for nothing write `false`, and lists and objects without an entry. */
function asksAny(value: JsonValue): boolean {
  return typeof value === 'object' && value !== null ? Object.keys(value).length > 0 : value !== false;
}

/** OpenAI answers `priority` where a request asked for `fast`. */
const TIER_SERVED: ReadonlyMap<string, string> = new Map([['fast', 'priority']]);
/** Names of tiers by which a request leaves the choice to the upstream. */
const NO_TIER: ReadonlySet<string> = new Set(['auto', 'standard_only']);

/** In words, what of the member has no price. */
function unpricedIn(
  rule: RequestRule,
  name: string,
  value: JsonValue,
  { hasPrice }: MemberPolicy,
  rates: Rates,
): string | undefined {
  switch (rule) {
    case 'service_tiers':
      if (typeof value !== 'string' || NO_TIER.has(value) || STANDARD.service_tier.has(value)) return undefined;
      return [value, TIER_SERVED.get(value) ?? value].some((tier) => rates.serviceTiers.has(tier))
        ? undefined
        : `${name} ${quote(value)}`;
    case 'speeds':
      return isPricedName(value, STANDARD.speed, rates.speeds) ? undefined : `${name} ${quote(value)}`;
    case 'geos':
      return isPricedName(value, STANDARD.geo, rates.geos) ? undefined : `${name} ${quote(value)}`;
    case 'models':
      return unpricedModel(name, value, hasPrice);
    case 'calls':
      return rates.meters.has('web_search') ? undefined : 'the tool web_search';
    case 'router':
      return asksAny(value) ? name : undefined;
    case 'unseen':
      return isObject(value) && value['bill_to'] === 'self' ? undefined : name;
    default:
      return undefined;
  }
}

function isPricedName(
  value: JsonValue,
  standard: ReadonlySet<string>,
  priced: ReadonlyMap<string, unknown> | undefined,
): boolean {
  return typeof value !== 'string' || standard.has(value) || priced?.has(value) === true;
}

/** `"default"` leaves the choice of the model to the upstream. */
function unpricedModel(name: string, value: JsonValue, hasPrice: (model: string) => boolean): string | undefined {
  if (!Array.isArray(value)) return `${name} ${quote(value)}`;
  for (const entry of value) {
    const model = isObject(entry) ? entry['model'] : undefined;
    if (typeof model === 'string' && !hasPrice(model)) return `the fallback model ${quote(model)}`;
  }
  return undefined;
}

const LIFETIMES: ReadonlyMap<string, TokenClass> = new Map([
  ['5m', 'cache_write_5m'],
  ['30m', 'cache_write_30m'],
  ['1h', 'cache_write_1h'],
  ['12h', 'cache_write_12h'],
]);

/** The objects that set how long a part of the cache lives, wherever in a request they stand. */
const MARKS: ReadonlySet<string> = new Set(['cache_control', 'prompt_cache_breakpoint', 'prompt_cache_options']);
/** A schema or an argument deeper than that is no place for one. */
const DEEPEST = 8;

function checkLifetimes(json: JsonObject, { model }: MemberPolicy, rates: Rates): void {
  visit(json, '', 0);

  function visit(value: JsonValue, at: string, depth: number): void {
    if (depth > DEEPEST || typeof value !== 'object' || value === null) return;
    if (Array.isArray(value)) {
      for (const [index, entry] of value.entries()) visit(entry, `${at}[${index}]`, depth + 1);
      return;
    }
    for (const [name, member] of Object.entries(value)) {
      if (member === undefined) continue;
      const path = at === '' ? name : `${at}.${name}`;
      if (MARKS.has(name)) check(member, path);
      else visit(member, path, depth + 1);
    }
  }

  function check(mark: JsonValue, at: string): void {
    const ttl = isObject(mark) ? mark['ttl'] : undefined;
    if (typeof ttl !== 'string') return;
    const rate = LIFETIMES.get(ttl);
    if (rate === undefined || !rates.tokens.has(rate)) throw refusal(model, `cache writes for ${quote(ttl)}`, `${at}.ttl`);
  }
}

/** A client's own value, short enough for a message. */
function quote(value: JsonValue): string {
  const text = JSON.stringify(value);
  return text.length > 100 ? `${text.slice(0, 100)}…` : text;
}
