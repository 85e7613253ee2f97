/** Prices of models written into the text of a configuration file: comments, order and every other member stay as they are. */
import { findNodeAtLocation, type Node as JsonNode, parseTree } from 'jsonc-parser';
import type { JsonObject } from '../../codecs/canonical/json.ts';

export interface PricedEntry {
  readonly name: string;
  /** The model as it is written where the file does not have it yet, its price included. */
  readonly whole: JsonObject;
  readonly price: JsonObject;
}

/** `text` is a valid configuration file. The price of a model that is there is replaced, models that are not there come first. */
export function withPrices(text: string, entries: readonly PricedEntry[]): string {
  const root = parseTree(text, [], { allowTrailingComma: true });
  if (root === undefined) return text;
  const models = findNodeAtLocation(root, ['models']);
  const added: string[] = [];
  const edits: Edit[] = [];
  for (const { name, whole, price } of entries) {
    const model = models === undefined ? undefined : findNodeAtLocation(models, [name]);
    const old = model === undefined ? undefined : findNodeAtLocation(model, ['price']);
    if (old !== undefined) edits.push({ offset: old.offset, length: old.length, text: inline(price) });
    else if (model !== undefined) edits.push(first(model, ` "price": ${inline(price)}`, ' '));
    else added.push(`${JSON.stringify(name)}: ${inline(whole)}`);
  }
  if (added.length > 0) {
    const end = text.includes('\r\n') ? '\r\n' : '\n';
    const indent = /^([ \t]+)"/m.exec(text)?.[1] ?? '  ';
    const lines = added.map((member) => `${end}${indent}${indent}${member}`).join(',');
    if (models !== undefined) edits.push(first(models, lines, `${end}${indent}`));
    else edits.push(first(root, `${end}${indent}"models": {${lines}${end}${indent}}`, end));
  }
  return applied(text, edits);
}

interface Edit {
  readonly offset: number;
  readonly length: number;
  readonly text: string;
}

/** Before everything else of the object, where no comma that stands there already is in the way. `close`: before its brace. */
function first({ offset, children = [] }: JsonNode, text: string, close: string): Edit {
  return { offset: offset + 1, length: 0, text: children.length > 0 ? `${text},` : `${text}${close}` };
}

function applied(text: string, edits: readonly Edit[]): string {
  const parts: string[] = [];
  let from = 0;
  for (const edit of edits.toSorted((a, b) => a.offset - b.offset)) {
    parts.push(text.slice(from, edit.offset), edit.text);
    from = edit.offset + edit.length;
  }
  return parts.join('') + text.slice(from);
}

/** On one line, as people write it. */
function inline(value: JsonObject): string {
  return JSON.stringify(value, null, 1).replaceAll(/\n */g, ' ');
}
