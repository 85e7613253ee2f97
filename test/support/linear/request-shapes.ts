/** Request bodies of a size that can be chosen, each legal in its dialect and with much of one thing. */
import type { Dialect } from '../../../src/codecs/canonical/dialect.ts';
import { isObject, type JsonObject } from '../../../src/codecs/canonical/json.ts';
import { requestBombs } from '../../slow/faults/support/bombs.ts';
import { list, record, SCHEMAS } from './schema-shapes.ts';

export interface RequestShape {
  readonly name: string;
  readonly dialect: Dialect;
  readonly body: (count: number) => object;
}

const shape = (dialect: Dialect, name: string, body: (count: number) => object): RequestShape => ({
  name,
  dialect,
  body: (count) => ({ model: 'm', ...(dialect === 'messages' ? { max_tokens: 9 } : {}), ...body(count) }),
});
const chat = (name: string, body: (count: number) => object) => shape('chat', name, body);
const messages = (name: string, body: (count: number) => object) => shape('messages', name, body);
const responses = (name: string, body: (count: number) => object) => shape('responses', name, body);
const completions = (name: string, body: (count: number) => object) => shape('completions', name, body);

const HI = [{ role: 'user', content: 'hi' }];
const EMPTY = { type: 'object', properties: { a: { type: 'string' } } };
const call = (id: string, name = 'f', input = '{}') => ({ id, type: 'function', function: { name, arguments: input } });
const tool = (name: string, parameters: object = EMPTY) => ({ type: 'function', function: { name, parameters } });
const long = (at: number) => `${'long'.repeat(40)}${at}`;
const envelope = (at: number) => `mz2.${Buffer.from(JSON.stringify({ value: `v${at}`, owner: {} })).toString('base64url')}`;
const carrier = (itemId: string) =>
  `mz2.${Buffer.from(JSON.stringify({ value: 'v', itemId, owner: { channelType: 'gemini', scope: 's', model: 'm' } })).toString('base64url')}`;
const said = (at: number) => ({ role: at % 2 === 0 ? 'user' : 'assistant', content: `word ${at}` });
const mixed = (at: number) => `p${(at * 7919) % 100_003}`;

/** All its members are required, and there are no others. */
const strictly = (schema: JsonObject): JsonObject => ({
  ...schema,
  required: Object.keys(isObject(schema['properties']) ? schema['properties'] : {}),
  additionalProperties: false,
});

/** Every schema, as the tool of each dialect and as the format of an answer. */
const schemas: RequestShape[] = Object.entries(SCHEMAS).flatMap(([name, schema]) => [
  chat(`tool: ${name}`, (count) => ({ messages: HI, tools: [tool('f', schema(count))] })),
  messages(`tool: ${name}`, (count) => ({
    messages: HI,
    tools: [{ name: 'f', input_schema: { type: 'object', ...schema(count) } }],
  })),
  messages(`strict tool: ${name}`, (count) => ({
    messages: HI,
    tools: [{ name: 'f', input_schema: strictly({ type: 'object', ...schema(count) }), strict: true }],
  })),
  responses(`strict tool: ${name}`, (count) => ({
    input: 'hi',
    tools: [{ type: 'function', name: 'f', parameters: { type: 'object', ...schema(count) }, strict: true }],
  })),
  responses(`format: ${name}`, (count) => ({
    input: 'hi',
    text: { format: { type: 'json_schema', name: 'f', schema: schema(count), strict: true } },
  })),
]);

/** Texts that hold JSON, whose values no limit of the body counts. */
const INPUTS: readonly (readonly [name: string, input: (count: number) => string])[] = [
  ['a list', (count) => `{"x":[${'{},'.repeat(40 * count)}{}]}`],
  ['many members', (count) => JSON.stringify(record(10 * count, 'p', (at) => at))],
  ['quotes', (count) => JSON.stringify({ a: '\\"x'.repeat(40 * count) })],
];

const histories: readonly RequestShape[] = [
  chat('results in reverse', (count) => ({
    messages: [
      ...HI,
      { role: 'assistant', tool_calls: list(count, (at) => call(`c${at}`)) },
      ...list(count, (at) => ({ role: 'tool', tool_call_id: `c${count - 1 - at}`, content: 'r' })),
    ],
  })),
  chat('calls without results, results without calls', (count) => ({
    messages: [
      ...HI,
      ...list(count, (at) =>
        at % 2 === 0
          ? { role: 'assistant', tool_calls: [call(`c${at}`)] }
          : { role: 'tool', tool_call_id: `r${at}`, content: 'r' },
      ),
      ...HI,
    ],
  })),
  ...INPUTS.flatMap(([name, input]) => [
    chat(`a call whose arguments are ${name}`, (count) => ({
      messages: [
        ...HI,
        { role: 'assistant', tool_calls: [call('c', 'f', input(count))] },
        { role: 'tool', tool_call_id: 'c', content: 'r' },
      ],
      tools: [tool('f')],
    })),
    responses(`a call whose arguments are ${name}`, (count) => ({
      input: [
        ...HI,
        { type: 'function_call', call_id: 'c', name: 'f', arguments: input(count) },
        { type: 'function_call_output', call_id: 'c', output: input(count) },
      ],
    })),
    messages(`a call whose input holds a text of ${name}`, (count) => ({
      messages: [
        ...HI,
        { role: 'assistant', content: [{ type: 'tool_use', id: 'c', name: 'f', input: { a: input(count) } }] },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'c', content: input(count) }] },
      ],
    })),
  ]),
  chat('calls of one id', (count) => ({
    messages: [
      ...HI,
      ...list(count, () => [
        { role: 'assistant', tool_calls: [call('c')] },
        { role: 'tool', tool_call_id: 'c', content: 'r' },
      ]).flat(),
    ],
  })),
  chat('long ids that differ at their end', (count) => ({
    messages: [
      ...HI,
      { role: 'assistant', tool_calls: list(count, (at) => call(long(at))) },
      ...list(count, (at) => ({ role: 'tool', tool_call_id: long(at), content: 'r' })),
    ],
  })),
  chat('a call of each tool', (count) => ({
    messages: [
      ...HI,
      { role: 'assistant', tool_calls: list(count, (at) => call(`c${at}`, `tool.${at}`)) },
      ...list(count, (at) => ({ role: 'tool', tool_call_id: `c${at}`, content: 'r' })),
    ],
    tools: list(count, (at) => tool(`tool.${at}`)),
    tool_choice: {
      type: 'allowed_tools',
      allowed_tools: { mode: 'auto', tools: list(count, (at) => ({ type: 'function', function: { name: `tool.${at}` } })) },
    },
  })),
  chat('calls of tools that nobody declared', (count) => ({
    messages: [
      ...HI,
      ...list(count, (at) => [
        { role: 'assistant', tool_calls: [call(`c${at}`, `gone.${at}`)] },
        { role: 'tool', tool_call_id: `c${at}`, content: [{ type: 'text', text: 'r' }] },
      ]).flat(),
    ],
  })),
  chat('thoughts and texts in turn', (count) => ({
    messages: [...HI, ...list(count, (at) => ({ role: 'assistant', content: `t${at}`, reasoning_content: `r${at}` })), ...HI],
  })),
  chat('signed thoughts with calls', (count) => ({
    messages: [
      ...HI,
      {
        role: 'assistant',
        content: 'x',
        tool_calls: list(count, (at) => call(`c${at}`)),
        reasoning_details: list(count, (at) => ({ type: 'reasoning.encrypted', data: envelope(at), id: `c${at}`, index: at })),
      },
      ...list(count, (at) => ({ role: 'tool', tool_call_id: `c${at}`, content: 'r' })),
    ],
  })),
  chat('summaries of ours without their payload', (count) => ({
    messages: [
      ...HI,
      {
        role: 'assistant',
        content: 'x',
        reasoning_details: list(count, (at) => ({
          type: 'reasoning.summary',
          summary: 's',
          format: 'unknown',
          id: `rs_${at}`,
          index: at,
        })),
      },
      ...HI,
    ],
  })),
  chat('annotations', (count) => ({
    messages: [
      ...HI,
      {
        role: 'assistant',
        content: 'words '.repeat(count),
        annotations: list(count, (at) => ({
          type: 'url_citation',
          url_citation: { url: `https://e.example/${at}`, title: 't', start_index: at, end_index: at + 3 },
        })),
      },
      ...HI,
    ],
  })),
  chat('members that nobody knows', (count) => ({ messages: HI, ...record(count, 'x_', (at) => at) })),
  chat('members that nobody knows, in messages', (count) => ({
    messages: list(count, (at) => ({ ...said(at), [`x_${at}`]: at, extra: { [`y_${at}`]: 1 } })),
  })),
  chat('tools with members that nobody knows', (count) => ({
    messages: HI,
    tools: list(count, (at) => ({ ...tool(`t${at}`), [`x_${at}`]: 1 })),
  })),
  chat('tools whose names must change', (count) => ({ messages: HI, tools: list(count, (at) => tool(`${long(at)} §`)) })),
  chat('tools with names of other tools', (count) => ({
    messages: HI,
    tools: list(count, (at) => tool(at % 2 === 0 ? `a.${at}` : `a_${at - 1}`)),
  })),
  chat('tools whose schemas look like numbers', (count) => ({
    messages: HI,
    tools: list(count, (at) => tool(`t${at}`, { type: 'object', properties: { z: {}, [mixed(at)]: {}, 5: { type: 'string' } } })),
  })),
  chat('stop sequences that begin alike', (count) => ({ messages: HI, stop: list(count, (at) => `${'s'.repeat(20)}${at}`) })),
  chat('stop sequences', (count) => ({ messages: HI, stop: list(count, (at) => `s${at}`) })),
  chat('biases', (count) => ({ messages: HI, logit_bias: record(count, '', (at) => at % 100) })),
  chat('system messages all over', (count) => ({
    messages: list(count, (at) => ({ role: ['system', 'user', 'developer', 'assistant'][at % 4], content: `w${at}` })),
  })),
  chat('pictures in results', (count) => ({
    messages: [
      ...HI,
      { role: 'assistant', tool_calls: list(count, (at) => call(`c${at}`)) },
      ...list(count, (at) => ({
        role: 'tool',
        tool_call_id: `c${at}`,
        content: [{ type: 'image_url', image_url: { url: `data:image/png;base64,AAAA${at % 10}AAA` } }],
      })),
    ],
  })),
  chat('changes of the configuration', (count) => ({
    messages: list(count, (at) => ({ ...said(at), configuration_update: { reasoning: { effort: 'low' } } })),
  })),
  chat('arguments that are long and many', (count) => ({
    messages: [
      ...HI,
      { role: 'assistant', tool_calls: list(count, (at) => call(`c${at}`, 'f', `{"a": "${long(at)}", "10":1.0,"2":[ ]}`)) },
      ...list(count, (at) => ({ role: 'tool', tool_call_id: `c${at}`, content: `{"r":"${at}"}` })),
    ],
  })),
  messages('results in reverse', (count) => ({
    messages: [
      ...HI,
      { role: 'assistant', content: list(count, (at) => ({ type: 'tool_use', id: `t${at}`, name: 'f', input: { a: at } })) },
      { role: 'user', content: list(count, (at) => ({ type: 'tool_result', tool_use_id: `t${count - 1 - at}`, content: 'r' })) },
    ],
    tools: [{ name: 'f', input_schema: EMPTY }],
  })),
  messages('results far from their calls', (count) => ({
    messages: [
      ...HI,
      ...list(count, (at) => [
        { role: 'assistant', content: [{ type: 'tool_use', id: `t${at}`, name: `f${at}`, input: {} }] },
        {
          role: 'user',
          content: [
            { type: 'text', text: 'x' },
            { type: 'tool_result', tool_use_id: `t${at}`, content: [] },
          ],
        },
      ]).flat(),
    ],
  })),
  messages('thinking in turn with text and calls', (count) => ({
    messages: [
      ...HI,
      {
        role: 'assistant',
        content: list(count, (at) => [
          { type: 'thinking', thinking: `t${at}`, signature: envelope(at) },
          { type: 'text', text: 'x' },
          { type: 'redacted_thinking', data: envelope(at) },
          { type: 'tool_use', id: `t${at}`, name: 'f', input: {} },
        ]).flat(),
      },
      { role: 'user', content: list(count, (at) => ({ type: 'tool_result', tool_use_id: `t${at}`, content: 'r' })) },
    ],
  })),
  messages('blank texts all over', (count) => ({
    system: list(count, () => ({ type: 'text', text: ' ' })),
    messages: [
      ...HI,
      ...list(count, (at) => ({
        role: at % 2 === 0 ? 'assistant' : 'user',
        content: at % 3 === 0 ? ' ' : [{ type: 'text', text: ' ' }],
      })),
    ],
  })),
  messages('functions that only programs may call', (count) => ({
    messages: HI,
    tools: list(count, (at) => ({
      ...{ name: `f${at}`, input_schema: EMPTY, defer_loading: true },
      allowed_callers: at % 2 === 0 ? ['code_execution_20260120'] : ['direct', 'code_execution_20260120'],
    })),
  })),
  chat('breakpoints where there is no place for one', (count) => ({
    prompt_cache_options: { mode: 'explicit', ttl: '12h' },
    messages: list(count, (at) => ({
      role: at % 2 === 0 ? 'user' : 'assistant',
      content: [{ type: 'text', text: `w${at}`, prompt_cache_breakpoint: { mode: 'explicit' } }],
    })),
  })),
  chat('long ids of calls', (count) => ({
    messages: [
      ...HI,
      { role: 'assistant', tool_calls: list(count, (at) => call(long(at))) },
      ...list(count, (at) => ({ role: 'tool', tool_call_id: long(count - 1 - at), content: 'r' })),
    ],
  })),
  messages('cache breakpoints and unknown members', (count) => ({
    system: list(count, (at) => ({ type: 'text', text: `s${at}`, cache_control: { type: 'ephemeral' }, [`x_${at}`]: 1 })),
    messages: list(count, (at) => ({
      role: at % 2 === 0 ? 'user' : 'assistant',
      content: [{ type: 'text', text: `w${at}`, cache_control: { type: 'ephemeral' }, [`x_${at}`]: 1 }],
    })),
  })),
  messages('citations', (count) => ({
    messages: [
      ...HI,
      {
        role: 'assistant',
        content: [
          {
            type: 'text',
            text: 'words '.repeat(count),
            citations: list(count, (at) => ({
              type: 'web_search_result_location',
              cited_text: 'words',
              url: `https://e.example/${at}`,
              title: 't',
              encrypted_index: 'E',
            })),
          },
        ],
      },
      ...HI,
    ],
  })),
  messages('blocks of the vendor', (count) => ({
    messages: [
      ...HI,
      {
        role: 'assistant',
        content: list(count, (at) => [
          { type: 'server_tool_use', id: `s${at}`, name: 'web_search', input: { query: 'q' } },
          { type: 'web_search_tool_result', tool_use_id: `s${at}`, content: [] },
        ]).flat(),
      },
      ...HI,
    ],
    tools: [{ type: 'web_search_20250305', name: 'web_search' }],
  })),
  messages('tools that come and go', (count) => ({
    messages: list(count, (at) => ({
      role: 'user',
      content: [
        { type: 'tool_addition', tool: { name: `t${at}`, input_schema: EMPTY } },
        { type: 'text', text: 'x' },
      ],
    })),
  })),
  messages('documents', (count) => ({
    messages: [
      {
        role: 'user',
        content: list(count, (at) => ({
          type: 'document',
          title: `t${at}`,
          source: { type: 'text', media_type: 'text/plain', data: `d${at}` },
          citations: { enabled: true },
        })),
      },
    ],
  })),
  responses('results in reverse', (count) => ({
    input: [
      ...HI,
      ...list(count, (at) => ({ type: 'function_call', call_id: `c${at}`, name: 'f', arguments: '{}' })),
      ...list(count, (at) => ({ type: 'function_call_output', call_id: `c${count - 1 - at}`, output: 'r' })),
    ],
  })),
  responses('thoughts, texts, calls and results in turn', (count) => ({
    input: list(count, (at) => [
      { type: 'reasoning', id: `rs_${at}`, summary: [{ type: 'summary_text', text: 't' }], encrypted_content: envelope(at) },
      { type: 'message', id: `msg_${at}`, role: 'assistant', content: [{ type: 'output_text', text: `t${at}` }] },
      { type: 'function_call', id: `fc_${at}`, call_id: `c${at}`, name: `f${at}`, arguments: '{}' },
      { type: 'function_call_output', call_id: `c${at}`, output: [{ type: 'input_text', text: 'r' }] },
    ]).flat(),
  })),
  responses('carriers of signatures', (count) => ({
    input: [
      ...HI,
      ...list(count, (at) => [
        { type: 'reasoning', id: `rs_mizu_${at}`, summary: [], encrypted_content: envelope(at) },
        { type: 'function_call', id: `fc_${at}`, call_id: `c${at}`, name: 'f', arguments: '{}' },
      ]).flat(),
      ...list(count, (at) => ({ type: 'function_call_output', call_id: `c${at}`, output: 'r' })),
    ],
  })),
  responses('carriers of signatures in front of their calls', (count) => ({
    input: [
      ...HI,
      ...list(count, (at) => ({
        type: 'reasoning',
        id: `rs_${at}`,
        summary: [],
        encrypted_content: carrier(`c${count - 1 - at}`),
      })),
      ...list(count, (at) => ({ type: 'function_call', id: `fc_${at}`, call_id: `c${at}`, name: 'f', arguments: '{}' })),
      ...list(count, (at) => ({ type: 'function_call_output', call_id: `c${at}`, output: 'r' })),
    ],
  })),
  responses('carriers of signatures behind one text', (count) => ({
    input: [
      ...HI,
      { type: 'message', id: 'msg_1', role: 'assistant', content: [{ type: 'output_text', text: 'x' }] },
      ...list(count, (at) => ({ type: 'reasoning', id: `rs_${at}`, summary: [], encrypted_content: carrier('msg_1') })),
      ...HI,
    ],
  })),
  responses('references to items', (count) => ({
    input: [...HI, ...list(count, (at) => ({ type: 'item_reference', id: `known_${at}` }))],
  })),
  responses('items that nobody knows', (count) => ({
    input: [...HI, ...list(count, (at) => ({ type: `novelty_${at}`, id: `n${at}`, [`x_${at}`]: { y: at } }))],
  })),
  responses('items of the vendor', (count) => ({
    input: [
      ...HI,
      ...list(count, (at) => ({
        type: 'web_search_call',
        id: `ws_${at}`,
        status: 'completed',
        action: { type: 'search', query: 'q' },
      })),
      ...HI,
    ],
    tools: [{ type: 'web_search' }],
  })),
  responses('tools in namespaces, called', (count) => ({
    input: [
      ...HI,
      ...list(count, (at) => ({ type: 'function_call', call_id: `c${at}`, namespace: `n${at}`, name: 'f', arguments: '{}' })),
      ...list(count, (at) => ({ type: 'function_call_output', call_id: `c${at}`, output: 'r' })),
    ],
    tools: list(count, (at) => ({
      type: 'namespace',
      name: `n${at}`,
      description: 'd',
      tools: [{ type: 'function', name: 'f', parameters: EMPTY }],
    })),
  })),
  responses('tools in one namespace of a long name', (count) => ({
    input: HI,
    tools: [
      {
        type: 'namespace',
        name: 'n'.repeat(200 * count),
        description: 'd',
        tools: list(count, (at) => ({ type: 'function', name: `f${at}`, parameters: EMPTY })),
      },
    ],
  })),
  responses('tools that items bring', (count) => ({
    input: [
      ...HI,
      ...list(count, (at) => ({
        type: 'additional_tools',
        role: 'developer',
        tools: [{ type: 'function', name: `f${at}`, parameters: EMPTY }],
      })),
    ],
  })),
  responses('allowed tools', (count) => ({
    input: 'hi',
    tools: list(count, (at) => ({ type: 'function', name: `f.${at}`, parameters: EMPTY })),
    tool_choice: { type: 'allowed_tools', mode: 'auto', tools: list(count, (at) => ({ type: 'function', name: `f.${at}` })) },
  })),
  responses('freeform tools, called', (count) => ({
    input: [
      ...HI,
      ...list(count, (at) => ({ type: 'custom_tool_call', call_id: `c${at}`, name: `f${at}`, input: 'a "b"\n' })),
      ...list(count, (at) => ({ type: 'custom_tool_call_output', call_id: `c${at}`, output: 'r' })),
    ],
    tools: list(count, (at) => ({ type: 'custom', name: `f${at}` })),
  })),
  responses('annotations and logprobs', (count) => ({
    input: [
      ...HI,
      {
        type: 'message',
        id: 'msg_1',
        role: 'assistant',
        content: [
          {
            type: 'output_text',
            text: 'a'.repeat(count),
            annotations: list(count, (at) => ({
              type: 'url_citation',
              url: `https://e.example/${at}`,
              title: 't',
              start_index: at,
              end_index: at,
            })),
            logprobs: list(count, () => ({ token: 'a', logprob: -1, bytes: [97], top_logprobs: [] })),
          },
        ],
      },
    ],
  })),
  responses('instructions as items', (count) => ({
    instructions: list(count, said),
    input: list(count, said),
    include: list(count, long),
  })),
  completions('a long prompt', (count) => ({ prompt: 'word "quoted"\n'.repeat(count), stop: ['x'] })),
  completions('members that nobody knows', (count) => ({ prompt: 'hi', ...record(count, 'x_', (at) => ({ at })) })),
  completions('biases', (count) => ({ prompt: 'hi', logit_bias: record(count, '', () => 1) })),
];

/** Bodies whose size grows by `count` elements, built once for each count. */
function bombs(): RequestShape[] {
  const made = new Map<number, ReturnType<typeof requestBombs>>();
  const at = (count: number, index: number): object => {
    const all = made.get(count) ?? requestBombs(count);
    made.set(count, all);
    return all[index]?.body ?? {};
  };
  return requestBombs(1).map(({ name, dialect }, index) => ({ name, dialect, body: (count) => at(count, index) }));
}

/** Those of which one of any size is made by itself. */
export const SINGLE_SHAPES: readonly RequestShape[] = [...schemas, ...histories];
export const REQUEST_SHAPES: readonly RequestShape[] = [...SINGLE_SHAPES, ...bombs()];
