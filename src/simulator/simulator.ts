/**
 * The simulated upstream: one raw HTTP server on a loopback port that speaks every upstream dialect in literal bytes.
 * Content comes from scripts (tests, bench) or from the demonstration's model. It shares no code with the gateway's codecs.
 */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { type Answer, jsonAnswer } from './answer.ts';
import { type Clouds, cloudDoors } from './clouds/door.ts';
import type { Door, Entered } from './clouds/entered.ts';
import { lazyKnowledge } from './corpus.ts';
import { planAnswer, type Plan } from './faults.ts';
import { Journal, type ReceivedRequest } from './journal.ts';
import { play } from './player.ts';
import { coloursOf, makePng } from './png.ts';
import { seedOf } from './random.ts';
import { responsesSockets } from './responses-socket.ts';
import { receive } from './received.ts';
import { ResponseMemory } from './response-memory.ts';
import { answerRoute, dialectOf, plainPath } from './routes.ts';
import { type Fault, type Pace, type RawAnswer, type Script, ScriptBook, type VideoCourse } from './script.ts';
import { createSeals } from './seals.ts';
import { malformedBody, plainFailure } from './text-route.ts';
import { createVideoJobs } from './video-jobs.ts';
import { VendorError } from './vendor-error.ts';
import type { SimulatorContext } from './context.ts';

export interface SimulatorOptions {
  /** Default 0: any free port. */
  readonly port?: number;
  /** Default 127.0.0.1. */
  readonly host?: string;
  /** The repository's root, whose documents the demonstration learns from. Absent: a few built-in sentences. */
  readonly docs?: string;
  /** Pace of the demonstration's answers; default 15 ms an event. Scripted answers default to no waiting. */
  readonly pace?: Pace;
  /** Listed by `GET /v1/models`. Any other name is served, too. */
  readonly models?: readonly string[];
  /** Scripts that wait from the start. */
  readonly script?: Script | readonly Script[];
  /** Refuse callers without this key, each in its dialect. Absent: any key. */
  readonly apiKey?: string;
  readonly video?: VideoCourse;
  /** Requests kept in the journal; default 1000. */
  readonly journal?: number;
  readonly now?: () => number;
  /** What the doors of the clouds check. Absent: they let everybody in. */
  readonly clouds?: Clouds;
  /** A fresh id with the prefix. */
  readonly mint?: (prefix: string) => string;
  /** Signs opaque values. Default random: a second simulator refuses the first one's. */
  readonly secret?: Uint8Array;
}

export interface Simulator {
  /** `http://127.0.0.1:PORT` */
  readonly url: string;
  readonly port: number;
  /** What models were asked, oldest first. */
  readonly requests: readonly ReceivedRequest[];
  /** What the clouds were asked beside it: credentials and lists of models. */
  readonly asides: readonly ReceivedRequest[];
  /** Answers the next matching request(s). */
  enqueue(...scripts: readonly Script[]): void;
  /** Answers every request for the model `script:NAME` or `script:NAME/…`. */
  define(name: string, script: Script): void;
  /** Forgets scripts and journal. */
  reset(): void;
  /** Ends open answers and the server. */
  close(): Promise<void>;
}

const LIMITS = { bodyBytes: 256 * 1024 * 1024, journalTextBytes: 1024 * 1024 };
const MODELS = ['demo-chat', 'demo-responses', 'demo-messages', 'demo-gemini', 'demo-embedding', 'demo-image', 'demo-video'];

export async function startSimulator(options: SimulatorOptions = {}): Promise<Simulator> {
  const book = new ScriptBook();
  const journal = new Journal(options.journal ?? 1000);
  const asides = new Journal(options.journal ?? 1000);
  const initial = options.script ?? [];
  for (const script of Array.isArray(initial) ? initial : [initial]) book.enqueue(script);
  const server = createServer({ keepAliveTimeout: 60_000 });
  const context = createContext(options, () => `http://${options.host ?? '127.0.0.1'}:${portOf(server)}`);
  const door = cloudDoors(options.clouds ?? {}, context.now, context.mint);
  const parts = { book, journal, asides, options, context, door };
  server.on('request', (request, response) => {
    void serve(request, response, parts);
  });
  const { mint, now } = context;
  const sockets = responsesSockets({ mint, now, answer: (entry) => prepare(entry, false, parts) });
  server.on('upgrade', (request, socket, head) => sockets.upgrade(request, socket, head));
  server.listen(options.port ?? 0, options.host ?? '127.0.0.1');
  await once(server, 'listening');
  return {
    url: context.origin(),
    port: portOf(server),
    get requests() {
      return journal.entries;
    },
    get asides() {
      return asides.entries;
    },
    enqueue(...scripts) {
      for (const script of scripts) book.enqueue(script);
    },
    define: (name, script) => book.define(name, script),
    reset() {
      book.clear();
      journal.clear();
      asides.clear();
    },
    async close() {
      const closed = once(server, 'close');
      sockets.close();
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

function portOf(server: Server): number {
  const address = server.address();
  return typeof address === 'object' && address !== null ? address.port : 0;
}

function createContext(options: SimulatorOptions, origin: () => string): SimulatorContext {
  const now = options.now ?? Date.now;
  return {
    now,
    mint: options.mint ?? ((prefix) => `${prefix}${randomBytes(16).toString('hex')}`),
    seals: createSeals(options.secret ?? randomBytes(32)),
    memory: new ResponseMemory(1000),
    knowledge: lazyKnowledge(options.docs),
    draw: (prompt) => makePng({ width: 1024, height: 1024 }, seedOf(prompt), false, coloursOf(prompt)).toString('base64'),
    videos: createVideoJobs(now, options.video ?? {}),
    origin,
  };
}

interface Parts {
  readonly book: ScriptBook;
  readonly journal: Journal;
  readonly asides: Journal;
  readonly options: SimulatorOptions;
  readonly context: SimulatorContext;
  readonly door: Door;
}

async function serve(request: IncomingMessage, response: ServerResponse, parts: Parts): Promise<void> {
  const { context } = parts;
  const received = await receive(request, LIMITS, context.now()).catch((error: unknown) => {
    // The caller left in the middle of its body, or sent too much of it: there is nobody to answer.
    response.destroy(error instanceof Error ? error : undefined);
  });
  if (received === undefined) return;
  const { entry, settle, malformed } = received;
  const { plan, pace } = prepare(entry, malformed, parts);
  entry.status = plan.silent ? 0 : plan.status;
  settle(await play(response, plan, pace));
}

function prepare(
  entry: ReceivedRequest,
  malformed: boolean,
  { book, journal, asides, options, context, door }: Parts,
): { plan: Plan; pace: Pace } {
  try {
    const entered = door(entry);
    (entered?.isAside === true ? asides : journal).add(entry);
    const request = entered?.request ?? entry;
    const script = book.take(request, entered?.isAside);
    const answer = answerEntered(entered, request, malformed, script, options, context);
    const streamed = answer.streamed;
    const pace = script?.pace ?? (script === undefined && streamed ? (options.pace ?? { ms: 15 }) : {});
    const headers = { ...answer.headers, ...lowered(script?.headers) };
    return {
      plan: planAnswer(
        { ...answer, headers },
        (script?.faults ?? []).map((fault) => spoken(fault, request, context, entered)),
      ),
      pace,
    };
  } catch (error) {
    // A script that cannot be played is the test's mistake: say so loudly, not in a vendor's voice.
    const message = error instanceof Error ? (error.stack ?? error.message) : String(error);
    return { plan: planAnswer(jsonAnswer(599, JSON.stringify({ simulator_error: message })), []), pace: {} };
  }
}

function lowered(headers: Readonly<Record<string, string>> = {}): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
}

function answerEntered(
  entered: Entered | undefined,
  request: ReceivedRequest,
  malformed: boolean,
  script: Script | undefined,
  options: SimulatorOptions,
  context: SimulatorContext,
): Answer {
  if (entered === undefined) return answerFor(request, malformed, script, options, context);
  if (script?.raw !== undefined) return entered.wrapRaw?.(rawAnswer(script.raw)) ?? rawAnswer(script.raw);
  if (entered.answer !== undefined) return entered.answer;
  // Behind a cloud the vendor asks for no key of its own.
  const { apiKey: _key, ...open } = options;
  const answer = answerFor(request, malformed, script, open, context);
  return entered.wrap?.(answer) ?? answer;
}

function answerFor(
  entry: ReceivedRequest,
  malformed: boolean,
  script: Script | undefined,
  options: SimulatorOptions,
  context: SimulatorContext,
): Answer {
  if (script?.raw !== undefined) return rawAnswer(script.raw);
  const dialect = dialectOf(plainPath(entry.path));
  const failed = (error: VendorError) =>
    jsonAnswer(error.status, dialect.failure(error, { mint: context.mint }), dialect.headers(context.mint('req_')));
  if (options.apiKey !== undefined && !entry.path.startsWith('/files/') && keyOf(entry) !== options.apiKey) {
    if (GEMINI_KEY_PATH.test(entry.path)) return failed(new VendorError(400, 'API key not valid. Please pass a valid API key.'));
    return failed(
      new VendorError(401, entry.path.endsWith('/messages') ? 'invalid x-api-key' : 'Incorrect API key provided.', {
        code: 'invalid_api_key',
      }),
    );
  }
  if (malformed) return failed(malformedBody(entry.text));
  return answerRoute(entry, script, context, options.models ?? MODELS);
}

const GEMINI_KEY_PATH = /^\/v1beta\//;

function keyOf(entry: ReceivedRequest): string {
  const bearer = /^Bearer (.+)$/.exec(entry.headers.authorization ?? '')?.[1];
  return entry.headers['x-api-key'] ?? entry.headers['x-goog-api-key'] ?? entry.query.key ?? bearer ?? '';
}

function rawAnswer(raw: RawAnswer): Answer {
  const chunks = raw.chunks ?? [raw.body ?? ''];
  const frames = chunks.map((chunk) =>
    typeof chunk === 'string' ? { part: 'content' as const, text: chunk } : { part: 'content' as const, text: '', bytes: chunk },
  );
  return {
    status: raw.status ?? 200,
    headers: { 'content-type': 'text/event-stream', ...lowered(raw.headers) },
    frames,
    streamed: true,
  };
}

/** A `status` fault without a body speaks in the vendor's shape. */
function spoken(fault: Fault, entry: ReceivedRequest, { mint }: SimulatorContext, entered: Entered | undefined): Fault {
  if (fault.type === 'status' && entered?.spoken !== undefined) return entered.spoken(fault);
  if (fault.type !== 'status' || fault.body !== undefined) return fault;
  const dialect = dialectOf(plainPath(entry.path));
  const text = plainFailure(dialect, fault.status, fault.message ?? 'The simulated upstream was told to fail.', fault.code, mint);
  return {
    ...fault,
    body: text,
    headers: { 'content-type': 'application/json', ...dialect.headers(mint('req_')), ...fault.headers },
  };
}
