/** Which models may stand in for another: rules that span several entries of `models`. */
import type { ModelKind } from '../../store/prices.ts';
import type { Model } from './config.ts';
import { type ConfigProblem, joinPath } from './config-error.ts';

/** Vectors of two models cannot be compared, and a video has one price that is set aside before it is made. */
const HAVE_NONE: ReadonlySet<ModelKind> = new Set(['embedding', 'video']);

export function checkFallbacks(models: ReadonlyMap<string, Model>, problems: ConfigProblem[]): void {
  for (const model of models.values()) {
    for (const [index, name] of model.fallbacks.entries()) {
      const message = faultOf(model, name, index, models);
      if (message !== undefined) problems.push({ path: `${joinPath(['models', model.name, 'fallbacks'])}[${index}]`, message });
    }
  }
}

function faultOf(model: Model, name: string, index: number, models: ReadonlyMap<string, Model>): string | undefined {
  const fallback = models.get(name);
  const quoted = JSON.stringify(name);
  if (HAVE_NONE.has(model.kind)) return `models of kind ${model.kind} have no fallbacks`;
  if (name === model.name) return 'is the model itself';
  if (fallback === undefined) return `${quoted} is not in models`;
  if (model.fallbacks.indexOf(name) < index) return `${quoted} is named twice`;
  if (fallback.kind !== model.kind) return `${quoted} is of kind ${fallback.kind}, and this model is of kind ${model.kind}`;
  if (fallback.rates === undefined) return `${quoted} has no price`;
  const way = wayFrom(name, model.name, models);
  return way === undefined ? undefined : `is a circle: ${[model.name, ...way].join(' -> ')}`;
}

/** The shortest way from one model to another; undefined where there is none. */
function wayFrom(from: string, to: string, models: ReadonlyMap<string, Model>): readonly string[] | undefined {
  const cameFrom = new Map<string, string | undefined>([[from, undefined]]);
  for (const name of cameFrom.keys()) {
    if (name === to) {
      const way: string[] = [];
      for (let at: string | undefined = to; at !== undefined; at = cameFrom.get(at)) way.unshift(at);
      return way;
    }
    for (const next of models.get(name)?.fallbacks ?? []) if (!cameFrom.has(next)) cameFrom.set(next, name);
  }
  return undefined;
}
