/** A query of the Claude Agent SDK that may run a shell. Arguments: the prompt; `continue` to go on with the last conversation. */
import { query } from '@anthropic-ai/claude-agent-sdk';

const [prompt, goesOn] = process.argv.slice(2);
const options = {
  allowedTools: ['Bash'],
  permissionMode: 'bypassPermissions',
  continue: goesOn === 'continue',
  cwd: process.cwd(),
};
for await (const message of query({ prompt, options })) console.log(JSON.stringify(message));
