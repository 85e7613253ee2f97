/**
 * The rules by which agents never break on an upstream of another protocol, each with the tests that hold it: for what a request
 * becomes, for an answer whole and as a stream, and over a WebSocket. `test/agent-rules.test.ts` finds every one of them.
 */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * `request`: what goes to the upstream. `whole`, `stream`: what comes back. `door`: what an endpoint of its own does. `socket`:
 * the same over a WebSocket.
 */
export type Way = 'request' | 'whole' | 'stream' | 'door' | 'socket';

export interface Clause {
  readonly says: string;
  /** Each a test as `FILE: TITLE`, from `test/` and without its ending; or `no: REASON` where there is nothing to hold. */
  readonly held: Partial<Readonly<Record<Way, readonly string[]>>>;
}

const NO_SOCKET = ['no: only clients of the responses protocol have a WebSocket'];
const NO_REQUEST_SOCKET = ['no: an endpoint of its own, which no WebSocket reaches'];
const everyWay = (about: string): string => `e2e/every-way: ${about}`;
/** A case of that file holds all three ways of an answer. */
const answered = (about: string) => ({ whole: [everyWay(about)], stream: [everyWay(about)], socket: [everyWay(about)] });
const asked = (about: string, ...tests: string[]) => ({ request: [...tests, everyWay(about)], socket: [everyWay(about)] });
/** A test of both forms of an answer. */
const both = (...tests: string[]) => ({ whole: tests, stream: tests });

const BETWEEN = 'codecs/answers-between-dialects';
const BREAKPOINTS = 'codecs/requests/cache-breakpoints';
const MEMBERS = 'codecs/requests/function-members';
const REPAIRS = 'codecs/requests/repairs';
const LIMITS = 'e2e/vendor-limits';
const LAST = 'e2e/last-block';
const SESSION = 'http/websocket/session';
const STEERING = 'http/websocket/steering';
const OPEN = 'e2e/open-responses';
const TRIGGER = 'http/text/compaction-trigger';
const REFERENCES = 'http/history/references';
const SERVER = 'http/server/server';
const FORMATS = `${LIMITS}: formats and strict tools as the SDKs of other vendors write them go over \${model}`;
const SPACES = `${LIMITS}: white space, temperatures, stops, small caps and an answer that begins go over \${model}`;

export const RULES: Readonly<Record<string, readonly Clause[]>> = {
  'the signature of a text, for messages clients': [
    {
      says: 'an empty thinking block in front of the item that follows, and nothing behind the last text, which the loss table names',
      held: {
        ...both('codecs/messages/answer/encode: signatures of calls and texts come back to them'),
        request: [
          'http/dispatch/conversation: signatures on texts and calls find their way back through a gateway whose upstream is another one',
        ],
        socket: NO_SOCKET,
      },
    },
    {
      says: 'an answer whose last item is a text ends in that text’s block',
      held: {
        ...both(`${LAST}: an answer that ends in a text ends in its block, whatever its upstream signs (\${how})`),
        socket: NO_SOCKET,
      },
    },
    {
      says: 'also where a chat upstream sends an encrypted thought behind the content',
      held: {
        ...both(`${LAST}: so does one whose upstream sends an encrypted thought behind its content (\${how})`),
        socket: answered('an encrypted thought behind the content').socket,
      },
    },
    {
      says: 'signatures of calls stand behind their call',
      held: {
        stream: [
          'rules/rule-10: rule 13: arguments stream live; the envelope of their signature follows the finished call, whole and once',
        ],
        whole: ['codecs/messages/answer/encode: signatures of calls and texts come back to them'],
        request: ['rules/rule-05: rule 5: the signature of a call comes back on that call, through every client dialect'],
        socket: answered('reasoning of every kind, a text, calls side by side').socket,
      },
    },
  ],
  'a model of another kind than the endpoint’s': [
    {
      says: '400 model_kind_mismatch at `model`, behind 403 and 404, at every endpoint',
      held: {
        door: [
          'http/server/model-kinds: every endpoint refuses models of other kinds with a 400 that names the model, whole and as a stream, in its own dialect',
          'http/videos/videos: every refusal has its status and code, holds nothing and reaches no upstream',
        ],
        socket: [
          'http/server/model-kinds: every endpoint refuses models of other kinds with a 400 that names the model, whole and as a stream, in its own dialect',
        ],
      },
    },
    {
      says: '503 for a model of the right kind whose Channels are out of service or cannot serve the endpoint',
      held: {
        door: [
          'http/server/model-kinds: a model of the right kind whose Channels cannot serve the endpoint is a 503, which may be tried again',
          `${SERVER}: a model whose Channels are all out of service exists, but is served by nobody and not listed`,
        ],
        socket: [
          'http/server/model-kinds: a model of the right kind whose Channels cannot serve the endpoint is a 503, which may be tried again',
        ],
      },
    },
  ],
  'compaction on Channels that have none': [
    {
      says: 'by `options.compaction` of a Channel or by the model’s setting, and off without them',
      held: {
        door: [
          `${OPEN}: a model’s own setting makes its Channels compact by summary; without any, only responses Channels compact`,
          'http/routes/compact: only a responses Channel can compact',
        ],
        socket: asked('a trigger of a compaction that nobody makes').socket,
      },
    },
    {
      says: 'the messages of the user verbatim, then one sealed item, which opens as text at every upstream, over HTTP and a WebSocket',
      held: {
        door: [`${OPEN}: Open Responses over \${model}: compaction, and a new chain from it over a socket and every upstream`],
        socket: [`${OPEN}: Open Responses over \${model}: compaction, and a new chain from it over a socket and every upstream`],
      },
    },
    {
      says: 'a trigger gives exactly one item, billed at the model’s price',
      held: {
        ...both(
          `${TRIGGER}: \${model}: one compaction item, whole, as a stream and over a socket; every upstream goes on with it`,
        ),
        socket: [
          `${TRIGGER}: \${model}: one compaction item, whole, as a stream and over a socket; every upstream goes on with it`,
        ],
      },
    },
    {
      says: 'an empty, cut or failed summary is none',
      held: {
        ...both(`${TRIGGER}: \${model}: an empty, cut or failed summary is no compaction, whole and as a stream`),
        door: [
          `${OPEN}: Open Responses over \${model}: a compaction without a model is refused; an empty or failed summary is no compaction`,
        ],
        socket: [
          `${TRIGGER}: \${model}: one compaction item, whole, as a stream and over a socket; every upstream goes on with it`,
        ],
      },
    },
    {
      says: 'one that was altered, cut short or made for another account is refused at its path',
      held: {
        request: [
          `${TRIGGER}: a compaction that was altered, truncated or made for another account is refused at its path`,
          `${LIMITS}: a compaction that nobody can read is refused at its path, over \${model}`,
        ],
        socket: asked('a compaction of nobody').socket,
      },
    },
  ],
  'message_start on converted routes': [
    {
      says: 'the input is the admission’s estimate, which message_delta corrects',
      held: {
        stream: [
          'http/text/text: message_start of another protocol’s answer has the estimate of the admission, message_delta what was counted',
          `${BETWEEN}: message_start has the estimate of the input, and message_delta what the upstream counted`,
        ],
        whole: [`${BETWEEN}: message_start has the estimate of the input, and message_delta what the upstream counted`],
        socket: NO_SOCKET,
      },
    },
  ],
  'cache breakpoints': [
    {
      says: 'one feature with its lifetime, in every pair that has a word for it, within each vendor’s count',
      held: asked(
        'breakpoints of the cache',
        `${BREAKPOINTS}: chat and responses upstreams get the members of OpenAI`,
        `${BREAKPOINTS}: routers of chat get cache_control, on tools too`,
        `${BREAKPOINTS}: a gemini upstream gets none, and the log names it`,
        `${BREAKPOINTS}: OpenAI's breakpoints reach messages and responses upstreams with the lifetime of the request`,
        `${BREAKPOINTS}: those of routers reach responses upstreams`,
        `${BREAKPOINTS}: the mode implicit is an automatic breakpoint at a messages upstream`,
        `${BREAKPOINTS}: a breakpoint whose place the vendor chooses is the mode implicit, with its lifetime`,
        `${BREAKPOINTS}: messages and chat upstreams get the latest four`,
        `${BREAKPOINTS}: none lives shorter than one behind it at a messages upstream, which refuses that`,
      ),
    },
    {
      says: '`cache_breakpoints: "auto"` sets them where the client set none',
      held: {
        request: [
          `${BREAKPOINTS}: sets them behind the instructions and the last two turns of the user, also where the dialect stays`,
          `${BREAKPOINTS}: sets none where the client set one, or left them to the vendor`,
        ],
        socket: asked('breakpoints of the cache').socket,
      },
    },
    {
      says: 'half-made ones are refused at their path',
      held: asked('a half-made breakpoint', `${BREAKPOINTS}: in each place of each client`),
    },
    {
      says: 'hit rates of each Channel and model are metrics',
      held: {
        door: ['http/dispatch/cache-members: hit rates: the input of each Channel and model by what the prompt cache did'],
        socket: ['no: counted where every exchange ends, whichever way it came'],
      },
    },
  ],
  'turns over a WebSocket': [
    {
      says: 'a continuation that fails lets go of the id that it named',
      held: {
        door: ['no: over HTTP nothing is held for a connection'],
        socket: [
          `${SESSION}: a continuation that fails lets go of the id that it named, on this connection alone`,
          `${OPEN}: Open Responses over \${model}: sockets: unknown ids, failed continuations, reconnections`,
        ],
      },
    },
    {
      says: 'the result of no call is 400 tool_call_not_found in a turn that continues or appends, and goes as over HTTP in one that does not',
      held: {
        request: [
          `${REFERENCES}: the result of a call that is nowhere in what a request continues is a 400 over HTTP, too, and nothing is asked`,
        ],
        socket: [
          `${SESSION}: the result of a call that is nowhere in the conversation: refused in a turn that continues, left out in one that does not`,
        ],
      },
    },
    {
      says: 'a steer reaches responses upstreams, with accepted, pending and failed; elsewhere it is refused in the vendor’s event',
      held: {
        door: ['no: there is no steering over HTTP'],
        socket: [
          `${STEERING}: a steer is passed on: accepted, the response ends as steered, and its successor is a turn of its own with its own price`,
          `${STEERING}: behind a call the input stays queued: pending comes after the end, and stands in front of the results`,
          `${STEERING}: a steer that the upstream refuses comes back with its input; half-made ones and those of no turn never reach it`,
          `${SESSION}: response.steer is refused in the vendor’s own event, with the input as it was, and disturbs no turn`,
        ],
      },
    },
  ],
  'answers of which another dialect can say nothing': [
    {
      says: 'response_not_representable, never an empty success',
      held: {
        ...both(
          `${BETWEEN}: an answer of which another dialect can say nothing is no empty success, streamed or whole`,
          everyWay('a tool of the server alone'),
          everyWay('code that gemini ran, alone'),
        ),
        socket: [everyWay('a tool of the server alone'), everyWay('code that gemini ran, alone'), everyWay('a program')],
      },
    },
  ],
  'functions that answer later, declare their output, are called by programs or loaded later': [
    {
      says: 'entries of the loss table; one that only programs may call is not offered as a direct one',
      held: asked(
        'functions that answer later, are loaded later and are for programs',
        `${MEMBERS}: that are loaded later, answer later or declare their output are offered without that`,
        `${MEMBERS}: that only programs may call cannot be required`,
        `${MEMBERS}: that only programs may call are not offered as direct ones`,
      ),
    },
  ],
  'tools and other members of response objects': [
    {
      says: 'every member that the protocol requires of a tool and of a response',
      held: {
        whole: [
          `${OPEN}: Open Responses over \${model}: a function call, and the tool echoed with every member`,
          `codecs/vendor-shapes: a \${client.dialect} client of a \${side.upstream.dialect} upstream reads what its vendor's SDK declares`,
        ],
        stream: [
          everyWay('a question'),
          `codecs/vendor-shapes: a \${client.dialect} client of a \${side.upstream.dialect} upstream reads what its vendor's SDK declares`,
        ],
        socket: [
          everyWay('a format and a strict tool with bounds'),
          `${OPEN}: Open Responses over \${model}: sockets: one turn, turns in sequence, a continuation`,
        ],
      },
    },
    {
      says: 'members without a value are absent where the vendor’s schema has no null',
      held: {
        whole: [
          'codecs/chat/answer/encode: say what the folded stream says',
          `codecs/vendor-shapes: a \${client.dialect} client of a \${side.upstream.dialect} upstream reads what its vendor's SDK declares`,
        ],
        stream: [
          "codecs/responses/answer/encode: encodeEvents: the response echoes the client's own values and always has its members",
        ],
        socket: [everyWay('a question')],
      },
    },
  ],
  'reasons for an end': [
    {
      says: 'one that the client’s dialect has no word for becomes one of its own, the upstream’s stands beside it',
      held: {
        ...both(
          `${BETWEEN}: a reason that the client’s dialect has no word for becomes one that it has, and the upstream’s word stands beside it`,
        ),
        socket: [everyWay('an answer that was steered'), everyWay('a pause of a messages upstream')],
      },
    },
  ],
  'response.reasoning.delta of Open Responses': [
    {
      says: 'read like raw reasoning',
      held: {
        ...both(
          `${BETWEEN}: what Open Responses calls response.reasoning is raw reasoning, for every client`,
          everyWay('what Open Responses calls reasoning'),
        ),
        socket: [everyWay('what Open Responses calls reasoning')],
      },
    },
  ],
  'words of 2026': [
    {
      says: 'gemini CONTINUATION is no success',
      held: {
        ...both(
          `${BETWEEN}: a reason that the client’s dialect has no word for becomes one that it has, and the upstream’s word stands beside it`,
        ),
        socket: [everyWay('an answer that gemini wants to go on with')],
      },
    },
    {
      says: 'gemini’s level minimal where the model has it',
      held: {
        request: [`${MEMBERS}: minimal effort is the level minimal where the model has it`],
        socket: asked('the least effort').socket,
      },
    },
    {
      says: 'messages: thinking between tools and fallbacks are named; a fallback’s pass is counted once',
      held: {
        request: [
          `${MEMBERS}: thinking between tools is left to other upstreams, and named`,
          `${MEMBERS}: fallbacks never choose a model of the upstream, and are named`,
        ],
        ...both(
          `${BETWEEN}: a fallback that answered is in the totals already: nothing of it is counted twice`,
          'http/money/unpriced-members: an upstream’s own fallback and its passes are charged at their models’ prices; a redeemed credit is flagged',
        ),
        socket: NO_SOCKET,
      },
    },
  ],
  'call ids': [
    {
      says: 'legal and unique at messages upstreams, also where the dialect stays; at most 40 characters to chat, 64 to responses',
      held: asked(
        'call ids of 200 characters',
        `${REPAIRS}: fit each vendor, stay distinct, and results keep matching their calls`,
        `${LIMITS}: messages to messages: call ids of other upstreams and white space are made what the vendor takes`,
        'codecs/messages/request/encode: an id that the calls of several turns share is another one in each, since the vendor takes none twice',
        'codecs/bad-input-pairs: ids of another vendor, of 200 characters',
      ),
    },
  ],
  'blank text': [
    {
      says: 'never at a messages upstream, whatever its role and place; the simulated vendor refuses it',
      held: asked(
        'blank texts of every role',
        `${REPAIRS}: as strings and as blocks, of every role, at every place`,
        `${REPAIRS}: in the system prompt, in results, documents and search results`,
        `${REPAIRS}: a request of nothing else is refused at its path`,
        'simulator/strict: messages: results follow calls, roles alternate, text is not empty',
        'codecs/bad-input-pairs: blank and empty texts in every place',
      ),
    },
  ],
  'encrypted reasoning behind its message': [
    {
      says: 'dropped for the owner whose rule that is, kept for others, on every path',
      held: {
        request: [
          `${MEMBERS}: goes only where the rule is its owner’s, OpenAI`,
          `${MEMBERS}: stays on the way through messages and chat clients, too`,
        ],
        socket: [everyWay('encrypted reasoning behind its message')],
      },
    },
  ],
  'sampling numbers beyond a vendor’s range': [
    {
      says: 'forwarded where the dialect stays; the vendor decides',
      held: asked(
        'a small cap, a high temperature and an answer that begins',
        `codecs/request-numbers: \${client.dialect} to \${client.dialect}: \${member} is forwarded as it is spelled, for the vendor to judge`,
      ),
    },
  ],
  'whole chat answers without a finish reason': [
    {
      says: 'accepted where they have content or calls, and an error where they have neither',
      held: {
        whole: [
          `${BETWEEN}: a whole chat answer without a finish reason is one where it says something, and ends as its calls say`,
          'codecs/chat/answer/encode: are undecodable, failed or truncated, never a success, where something is missing',
        ],
        stream: [
          'failures/responses-over-others: R3: an end without a finish reason is a failure, and no call in it is completed',
        ],
        socket: answered('a chat answer in parts, its reasoning beside the output').socket,
      },
    },
  ],
  'an end of the bytes inside the last event': [
    {
      says: 'good behind the dialect’s finish, a truncation before it',
      held: {
        stream: [
          `${BETWEEN}: an end of the bytes inside an event is good behind the finish, and a truncation before it`,
          `${BETWEEN}: an end inside an event behind the finish is good, too, where calls may have to be unwrapped`,
        ],
        whole: ['no: a whole body that ends early is no JSON'],
        socket: [everyWay('a chat answer in parts, its reasoning beside the output'), everyWay('a pause of a messages upstream')],
      },
    },
  ],
  'reasoning above the output in a report': [
    {
      says: 'added where the total shows that it stands outside',
      held: {
        stream: [`${BETWEEN}: reasoning above the output is added where the total shows that it stands outside`],
        whole: [
          'codecs/canonical/usage: reasoning is a part of the output: a total says where it was counted, a greater reasoning only where no total does',
        ],
        socket: answered('a chat answer in parts, its reasoning beside the output').socket,
      },
    },
  ],
  'chat content that is a list': [
    {
      says: 'the string, the reasoning and the calls that the protocol has',
      held: {
        ...both(`${BETWEEN}: content that is a list is a text for chat clients, with the reasoning and the calls beside it`),
        socket: answered('a chat answer in parts, its reasoning beside the output').socket,
      },
    },
  ],
  'names of models on the wire': [
    {
      says: 'the logical name stands in every error',
      held: {
        ...both(`http/model-names: \${path} over \${model}: an error of the upstream names the model as the client does`),
        socket: answered('a mistake that names the model of the wire').socket,
      },
    },
  ],
  'GET /v1/models': [
    {
      says: 'each entry serves both families of SDKs; the list is no page of several',
      held: {
        door: [
          `${SERVER}: a model list holds what the key may use, by name`,
          'http/vendor-shapes: the list of models and each of them are those of both SDKs',
        ],
        socket: NO_REQUEST_SOCKET,
      },
    },
    {
      says: 'one model by the rest of the path, decoded once; 404, 403, HEAD, OPTIONS, other methods',
      held: {
        door: [`${SERVER}: one model by its name, which may hold slashes and be percent-encoded once`],
        socket: NO_REQUEST_SOCKET,
      },
    },
    {
      says: '/v1/v1 is /v1 for the aliased endpoints alone',
      held: {
        door: [
          `${SERVER}: /v1/v1 is read as /v1 where there are aliases, and unlisted paths are answered in the words of the endpoint above them`,
        ],
        socket: [`${SESSION}: every alias opens, other paths and other protocols do not`],
      },
    },
  ],
  'json_object towards messages': [
    {
      says: 'an instruction, listed as coerced',
      held: asked(
        'any JSON object',
        FORMATS,
        'failures/responses-over-others: R13: formats map both ways, and json_object carries no schema',
      ),
    },
  ],
  'a reference that cannot be resolved': [
    {
      says: '400 item_not_found at its path towards chat, messages and gemini; to responses as it is',
      held: asked(
        'a reference to an item that nobody keeps',
        `${REFERENCES}: a reference that cannot be resolved is a 400 at its path towards \${model}, and nothing is asked`,
        `${REFERENCES}: a responses upstream gets the reference as it is, and so does a model that has one beside another Channel`,
        'http/history/replay: F37: an unknown, a foreign and an expired id read the same',
      ),
    },
    {
      says: 'calls and results without their other half stay out of stateless requests, and the row names them',
      held: {
        request: [
          'codecs/tools/call-pairs: a call without a result and a result without a call go, and reasoning that led to the call alone goes along',
          'codecs/gemini/request/encode: calls without a result and results without a call are left out and named',
        ],
        socket: [
          `${SESSION}: the result of a call that is nowhere in the conversation: refused in a turn that continues, left out in one that does not`,
        ],
      },
    },
  ],
  'schemas of formats and strict tools': [
    {
      says: 'lowered as that vendor’s SDK lowers them; strict off where the schema says more than the vendor takes',
      held: asked(
        'a format and a strict tool with bounds',
        FORMATS,
        'codecs/schemas/vendor-subsets: a schema that the messages vendor can say is lowered as its own SDK lowers it',
        'codecs/schemas/vendor-subsets: what the vendor’s subset cannot say is known: maps, any value, recursion, foreign references, great depth',
        'codecs/schemas/lowering: G12: keywords that the target refuses are left out, at every schema position',
      ),
    },
    {
      says: 'strict messages tools towards OpenAI',
      held: {
        request: [
          `${LIMITS}: strict tools of a messages client: strict at OpenAI where every member is required, else without it`,
          'codecs/schemas/vendor-subsets: OpenAI takes a strict tool whose members are all required; its objects are closed',
        ],
        socket: NO_SOCKET,
      },
    },
  ],
  'calls in the history and no tools': [
    {
      says: 'the called names are declared with open schemas and tool_choice none, at messages upstreams',
      held: asked(
        'calls in the history and no tools',
        `${LIMITS}: a handoff to an agent without tools goes on over \${model}: its history has calls, its request no tools`,
        'codecs/bad-input-pairs: calls whose tools are gone',
      ),
    },
  ],
  'caps below a vendor’s least': [
    {
      says: 'raised to it where the client’s dialect allows less',
      held: asked(
        'a small cap, a high temperature and an answer that begins',
        SPACES,
        'codecs/bad-input-pairs: an output of one token',
      ),
    },
    {
      says: 'errors name the client’s own member',
      held: {
        ...both(`http/member-words: \${body.path} over \${model}: \${said.message}`),
        socket: answered('a mistake that names the model of the wire').socket,
      },
    },
  ],
  'values that another vendor’s range leaves out': [
    {
      says: 'clamped, cut and kept by the gateway’s own stop, or prefixed',
      held: {
        ...asked(
          'a small cap, a high temperature and an answer that begins',
          SPACES,
          'codecs/messages/request/encode: caps, sampling, format, user',
          'codecs/gemini/request/encode: G9: a history that starts with the model, or that has no turn at all, gets a first turn of the user',
        ),
        stream: [
          `codecs/answers/own-stops: a chat upstream takes four: the fifth ends the answer of a messages client (\${stream ? 'stream' : 'whole'})`,
        ],
        whole: [
          `codecs/answers/own-stops: a chat upstream takes four: the fifth ends the answer of a messages client (\${stream ? 'stream' : 'whole'})`,
        ],
      },
    },
  ],
  'a 429 on the only Channel': [
    {
      says: 'one wait, then 502 with the vendor’s time; no second layer of tries',
      held: {
        ...both(
          'e2e/asked-once: one 429 with a short time is waited for: no client hears of it, and the upstream is asked twice',
          'e2e/asked-once: a limit that stays is a 502 with the time of the upstream, and costs it two requests for each of the client’s',
        ),
        socket: [
          'e2e/asked-once: a limit that stays is a 502 with the time of the upstream, and costs it two requests for each of the client’s',
        ],
      },
    },
  ],
  'token ids as the input of embeddings': [
    {
      says: 'lists of them and lists of those, at chat and responses Channels; elsewhere, and mixed, a 400 at input',
      held: {
        door: [
          'http/embeddings: token ids go on as they are, one vector for each list, and are counted exactly where the upstream does not',
          'http/embeddings: token ids are refused at `input` where no Channel of the model reads them',
          `http/embeddings: refused: \${JSON.stringify(body)} names \${param}`,
        ],
        socket: NO_REQUEST_SOCKET,
      },
    },
  ],
  'reasoning that nobody signed, for messages clients': [
    {
      says: 'a thinking block with an envelope for its signature, which brings the text back though the client drops it',
      held: {
        ...both(
          `${LAST}: reasoning that nobody signed comes back to a chat upstream, also from a client that drops its text (\${how})`,
        ),
        request: [
          `${LAST}: reasoning that nobody signed comes back to a chat upstream, also from a client that drops its text (\${how})`,
        ],
        socket: NO_SOCKET,
      },
    },
  ],
};

/** What clients lost before these rules. */
export const FAULTS: Readonly<Record<string, readonly string[]>> = {
  'partial text lost when a stream fails behind a call, for messages and chat clients': [
    'codecs/partial-answers: a text that waited for a call when the stream failed is written before the failure, for a messages client',
    'codecs/partial-answers: a text that waited for another when the stream failed is written before the failure, for a chat client',
  ],
  'a late citation from chat to responses that nobody names': [
    'http/text/answer-losses: a citation that came after its text had ended is named, for a responses client of a chat upstream',
  ],
  'members beside `choices: []` and usage, chat to chat': [
    'codecs/partial-answers: members beside `choices: []` and usage reach a chat client that has not asked for usage, and one that has',
  ],
  'audio that a final message repeats': ['codecs/partial-answers: audio that the final message repeats is said once'],
  'a text that was cut before a native block and ends completed': [
    'codecs/partial-answers: a text that a limit cut is incomplete, also where a native block follows it',
  ],
  'write_stall_ms of a Channel': [
    `http/text/silence: X7: a client that stops reading is let go after write_stall_ms \${whose}, with its upstream`,
    `http/text/silence: F17: a client that takes nothing of a large whole answer is let go after write_stall_ms \${whose}`,
  ],
  '"did not begin to answer" for an answer that broke in the middle': [
    'http/dispatch/network: a whole answer that broke off in the middle is not said not to have begun',
  ],
  'Python: an item_reference that has expired vanishes with its result': [
    `${REFERENCES}: a reference that cannot be resolved is a 400 at its path towards \${model}, and nothing is asked`,
  ],
  'Python: formats with minimum or open objects at messages upstreams (parse(), --schema, instructor)': [FORMATS],
  'Python: a handoff to an agent without tools': [
    `${LIMITS}: a handoff to an agent without tools goes on over \${model}: its history has calls, its request no tools`,
  ],
  'Python: one 429 becomes eighteen requests': [
    'e2e/asked-once: a limit that stays is a 502 with the time of the upstream, and costs it two requests for each of the client’s',
  ],
  'Python: what libraries send that no test drives': [
    `e2e/python-clients: \${client}: what it sends is answered over every upstream`,
  ],
  'Python: token arrays of embeddings': [
    'http/embeddings: token ids go on as they are, one vector for each list, and are counted exactly where the upstream does not',
  ],
};

/** What clients send by mistake: the documented error at its path, or the documented repair. */
export const BAD_INPUT: Readonly<Record<string, readonly string[]>> = {
  'half-made breakpoints': [
    'codecs/bad-input-pairs: half-made breakpoints',
    `${BREAKPOINTS}: in each place of each client`,
    everyWay('a half-made breakpoint'),
  ],
  'steer events without a turn, and half-made ones': [
    `${SESSION}: response.steer is refused in the vendor’s own event, with the input as it was, and disturbs no turn`,
    `${STEERING}: a steer that the upstream refuses comes back with its input; half-made ones and those of no turn never reach it`,
  ],
  'compaction items that were altered, truncated or made by another account': [
    `${TRIGGER}: a compaction that was altered, truncated or made for another account is refused at its path`,
    everyWay('a compaction of nobody'),
    'failures/compaction: a readable summary of a messages upstream is said; one that failed is nothing; one that nobody else reads is refused',
  ],
  'foreign ids of 200 characters': [
    'codecs/bad-input-pairs: ids of another vendor, of 200 characters',
    `${LIMITS}: responses to responses: ids of items that another vendor of the protocol gave are left out once they are refused`,
    `${REFERENCES}: the path is that of the client’s own input, behind a history; a very long id is shown in part`,
    everyWay('call ids of 200 characters'),
  ],
  'blank text in every place': [
    'codecs/bad-input-pairs: blank and empty texts in every place',
    'codecs/bad-input-pairs: a request of nothing but blank text',
    everyWay('blank texts of every role'),
  ],
};

const sources = new Map<string, string>();
const ROOT = join(import.meta.dirname, '..');

function sourceOf(file: string): string {
  const known = sources.get(file);
  if (known !== undefined) return known;
  const path = join(ROOT, `${file}.test.ts`);
  const text = existsSync(path) ? readFileSync(path, 'utf8') : '';
  sources.set(file, text);
  return text;
}

/** Whether the file has a test of this title, or a named case of a table of tests. */
export function isThere(reference: string): boolean {
  const [, file = '', title = ''] = /^([\w/-]+): (.*)$/s.exec(reference) ?? [];
  const text = sourceOf(file);
  return ["'", '"', '`'].some((quote) => {
    const literal = quote + title + quote;
    return [`test(${literal}`, `it(${literal}`, `test(\n    ${literal}`, `\n  ${literal}: `].some((form) => text.includes(form));
  });
}

/** What is not held: a clause without a way, a way without a test, a test that is not there. */
export function unheld(rules: Readonly<Record<string, readonly Clause[]>>): string[] {
  return Object.entries(rules).flatMap(([rule, clauses]) =>
    clauses.flatMap(({ says, held }) => {
      const isWhole =
        held.request !== undefined || held.door !== undefined || (held.whole !== undefined && held.stream !== undefined);
      const ways = Object.entries(held);
      return [
        ...(isWhole ? [] : [`${rule}: ${says}: in neither direction`]),
        ...(held.socket === undefined ? [`${rule}: ${says}: over a WebSocket?`] : []),
        ...ways.flatMap(([way, tests]) => (tests.length === 0 ? [`${rule}: ${says}: ${way} has no test`] : [])),
        ...ways.flatMap(([, tests]) => missingOf(tests)).map((test) => `${rule}: ${says}: there is no ${test}`),
      ];
    }),
  );
}

export const missingOf = (tests: readonly string[]): string[] =>
  tests.filter((test) => (test.startsWith('no: ') ? test.length < 30 : !isThere(test)));
