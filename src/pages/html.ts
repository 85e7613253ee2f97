/**
 * HTML that is always escaped: the `html` tag is the only way to make a `Markup`, and it escapes every value that is not Markup
 * already. Escaped text is safe between tags and in quoted attributes; it is never put into scripts, styles or URLs.
 */

export class Markup {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

export type Fragment = Markup | string | number | readonly Fragment[];

const ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ENTITIES[character] ?? '').toWellFormed();
}

/** Lists are joined without a separator. */
export function html(parts: TemplateStringsArray, ...values: readonly Fragment[]): Markup {
  const out: string[] = [];
  parts.forEach((part, index) => {
    out.push(part);
    if (index < values.length) out.push(markupOf(values[index] ?? ''));
  });
  return new Markup(out.join(''));
}

function markupOf(value: Fragment): string {
  if (value instanceof Markup) return value.text;
  if (typeof value === 'string') return escapeHtml(value);
  if (typeof value === 'number') return String(value);
  return value.map(markupOf).join('');
}

/**
 * Fills the slots (`<!--{name}-->`) of a template. A slot without a value and a value without a slot are mistakes of ours, found
 * at the first render. Values are put in at once, so that a slot's name inside a value stays text.
 */
export function fillTemplate(template: string, slots: Readonly<Record<string, Fragment>>): string {
  const open = new Set(Object.keys(slots));
  const filled = template.replace(/<!--\{([a-z-]+)\}-->/g, (_whole, name: string) => {
    const value = slots[name];
    if (value === undefined) throw new Error(`template slot ${name} has no value`);
    open.delete(name);
    return markupOf(value);
  });
  if (open.size > 0) throw new Error(`no such template slot: ${[...open].join(', ')}`);
  return filled;
}
