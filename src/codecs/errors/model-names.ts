/** Upstreams name the model in their errors as they know it; clients know it by the name that they asked for. */
import { GatewayError } from '../canonical/error.ts';

/** What a name must not be a part of: another name, such as that of a larger model. */
const BEFORE = String.raw`(?<![\w-]|\w\.)`;
const BEHIND = String.raw`(?![\w-]|\.\w)`;

/** The error with `wire`, the upstream's name of the model, replaced by the logical one in its message. */
export function namingModel(error: GatewayError, wire: string, logical: string): GatewayError {
  if (wire === '' || wire === logical || !error.message.includes(wire)) return error;
  const escaped = wire.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&');
  const name = new RegExp(`${BEFORE}${escaped}${BEHIND}`, 'g');
  const message = error.message.replace(name, () => logical);
  return message === error.message ? error : new GatewayError(error.code, message, error.details);
}

/** How vendors quote a model that is not there, or not for this credential: `model "m"`, and Anthropic's `model: m`. */
const NAMED_MODEL = /\bmodel\s+\\?["'`]([^"'`\s\\]{1,200})\\?["'`]|\bmodel: ([\w./:@-]{0,199}\w)/gi;

/** Vendors name it in their first words; a longer text is a page, or means harm. */
const MOST_READ = 16 * 1024;

/**
 * A 404 or 403 about other models than the one that is asked, such as that of an image tool: who wrote the request named them.
 * `own`: the names of the one that is asked.
 */
export function namesOtherModels(error: GatewayError, own: readonly string[]): boolean {
  const { status, text = '' } = error.details.upstream ?? {};
  if (status !== 404 && status !== 403) return false;
  const named = [...text.slice(0, MOST_READ).matchAll(NAMED_MODEL)].map(([, quoted, plain = '']) => quoted ?? plain);
  return named.length > 0 && !named.some((name) => own.some((one) => isSameModel(name, one)));
}

/** With the path that a router's name or a cloud's has in front of it, or the snapshot that an alias stands for behind it. */
function isSameModel(name: string, own: string): boolean {
  const isPath = own.endsWith(`/${name}`) || (name.startsWith('projects/') && name.endsWith(`/models/${own}`));
  return name === own || isPath || isSnapshot(name, own) || isSnapshot(own, name);
}

/** `gpt-5-2025-08-07` of `gpt-5`, and `-001`, `@20250514`, `-v1:0`; `gpt-5-2` would be another. */
function isSnapshot(name: string, alias: string): boolean {
  return name.startsWith(alias) && /^(?:[-@]\d{3,}|-v\d|:\d)/.test(name.slice(alias.length));
}
