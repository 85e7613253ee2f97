/**
 * The arguments of a call that has none: whoever parses them (upstreams, agents) needs an object, so they are `{}` everywhere.
 */
export const NO_ARGUMENTS = '{}';

/** The argument text as it is, `{}` for a blank one. */
export function callArguments(text: string): string {
  return text.trim() === '' ? NO_ARGUMENTS : text;
}

/** True for the argument text of a call without arguments: blank, or the `null` of some models (Llama on Groq). */
export function isEmptyInput(text: string): boolean {
  const trimmed = text.trim();
  return trimmed === '' || trimmed === 'null';
}
