/** The meaning of tool choices, which is the same in all dialects. */
import type { ToolChoice } from '../canonical/request.ts';

/** True when the model may not answer without a call. */
export function requiresCall(choice: ToolChoice | undefined): boolean {
  return choice?.mode === 'required' || choice?.mode === 'tool' || (choice?.mode === 'allowed' && choice.require);
}
