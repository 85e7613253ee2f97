/**
 * `mizu convert`: a recorded answer of an upstream, piped through the gateway's own stages into a client's protocol. It reads no
 * configuration, store or network, and its secret, clock and ids are fixed, so that the same input always gives the same output.
 */
import { type Static, Type } from 'typebox';
import { GatewayError } from '../codecs/canonical/error.ts';
import { asSent, type CanonicalRequest } from '../codecs/canonical/request.ts';
import { isObject, type JsonObject, tryJson } from '../codecs/canonical/json.ts';
import type { Opaque, Owner } from '../codecs/canonical/opaque.ts';
import type { ClientCodec, DecodeContext, Mint, OutFrame, ResponseContext, UpstreamCodec } from '../codecs/codec.ts';
import { createEnvelopes } from '../codecs/envelope.ts';
import { type Answer, pipeAnswer, pipeFrames } from '../codecs/pipeline.ts';
import { CLIENTS, UPSTREAM_NAMES } from '../codecs/registry.ts';
import { verbatimNames } from '../codecs/tools/names.ts';
import { toGatewayError, upstreamFailure } from '../http/errors.ts';
import { createSseFramer } from '../streams/sse-encode.ts';
import type { Step } from '../codecs/canonical/event.ts';
import { RefusedError } from '../http/admin/refusals.ts';
import { UsageError, type Verb, type VerbContext, verb } from './verb.ts';

const ACCOUNT = 'convert';
const SECONDS = 1_700_000_000;
const MAX_EVENT_BYTES = 64 * 1024 * 1024;

const Convert = Type.Object(
  {
    from: Type.Optional(Type.String()),
    to: Type.Optional(Type.String()),
    request: Type.Optional(Type.String()),
    chunk: Type.Optional(Type.String()),
    whole: Type.Optional(Type.Boolean()),
  },
  { additionalProperties: false },
);
type ConvertOptions = Static<typeof Convert>;
type Write = VerbContext['write'];

interface Conversion {
  readonly client: ClientCodec;
  readonly upstream: UpstreamCodec;
  readonly decoding: DecodeContext;
  readonly encoding: ResponseContext;
}

/** After a failure, which is on standard output in the client's form, rejects with RefusedError. */
async function convert({ input, write, readFile }: VerbContext, options: ConvertOptions): Promise<void> {
  const size = sizeOf(options.chunk);
  const conversion = conversionOf(options, readFile);
  const bytes = ReadableStream.from(piecesOf(input, size));
  const answer = pipeAnswer(bytes, conversion.upstream.decodeEvents(conversion.decoding), MAX_EVENT_BYTES);
  const failure =
    options.whole === true ? await writeWhole(answer, conversion, write) : await writeStream(answer, conversion, write);
  if (failure !== undefined) throw new RefusedError(`${failure.shownCode}: ${failure.message}`);
}

async function writeStream(
  { steps, fold }: Answer<ReadableStream<readonly Step[]>>,
  { client, encoding }: Conversion,
  write: Write,
): Promise<GatewayError | undefined> {
  let told: GatewayError | undefined;
  const frames = pipeFrames(steps, client.encodeEvents(encoding), (thrown) => {
    told = toGatewayError(upstreamFailure(thrown));
    return told;
  });
  const frame = createSseFramer();
  await frames.pipeTo(
    new WritableStream<readonly OutFrame[]>({ write: (batch) => write(batch.map((one) => frame(one)).join('')) }),
  );
  const { outcome } = fold;
  return outcome?.status === 'failed' || outcome?.status === 'cancelled' ? (told ?? outcome.error) : told;
}

async function writeWhole(
  { steps, fold }: Answer<ReadableStream<readonly Step[]>>,
  { client, encoding }: Conversion,
  write: Write,
): Promise<GatewayError | undefined> {
  let failure: GatewayError | undefined;
  let body: string;
  try {
    for await (const batch of steps) void batch;
    const { outcome } = fold;
    if (outcome === undefined) throw new Error('an answer without an outcome passed the order');
    failure = outcome.status === 'failed' || outcome.status === 'cancelled' ? outcome.error : undefined;
    // The only dialect whose whole answer can report a failure.
    if (failure !== undefined && client.dialect !== 'responses') throw failure;
    body = client.encodeResponse(fold.whole(outcome), undefined, encoding);
  } catch (thrown) {
    failure = toGatewayError(upstreamFailure(thrown));
    body = client.encodeError(failure, 'req_convert');
  }
  await write(`${body}\n`);
  return failure;
}

function conversionOf(options: ConvertOptions, readFile: VerbContext['readFile']): Conversion {
  const upstream = named(UPSTREAM_NAMES, 'from', options);
  const client = named(CLIENT_NAMES, 'to', options);
  const secret = { id: 1, bytes: Buffer.alloc(32, 'mizu convert') };
  const envelopes = createEnvelopes({ current: () => secret, byId: (id) => (id === secret.id ? secret : undefined) });
  const { request: file } = options;
  const open = envelopes.opener(ACCOUNT);
  const given = file === undefined ? emptyRequest(client) : readRequest(file, client, readFile, open);
  const request: CanonicalRequest = { ...given, stream: options.whole !== true };
  const owner: Owner = { channelType: upstream.channelType, scope: 'convert', model: request.model };
  const target = { owner, options: {}, facts: {}, without: new Set<never>() };
  const toolNames = file === undefined ? verbatimNames : usable(file, () => upstream.encodeRequest(request, target).toolNames);
  const sent = asSent(request);
  const encoding: ResponseContext = {
    responseId: `${client.idPrefix}${'0'.repeat(32)}`,
    model: request.model,
    createdAt: SECONDS,
    now: () => SECONDS,
    request: sent,
    owner,
    seal: (opaque) => envelopes.seal(opaque, ACCOUNT),
    mint: countingMint('c'),
  };
  return { client, upstream, encoding, decoding: { owner, request: sent, toolNames, options: {}, mint: countingMint('a') } };
}

/** Ids that count. Each side has its own, so that they do not depend on how far one side is ahead of the other. */
function countingMint(side: 'a' | 'c'): Mint {
  let minted = 0;
  return (prefix) => `${prefix}${side}${(++minted).toString(16).padStart(31, '0')}`;
}

/** The request that is assumed where none is given. */
function emptyRequest({ dialect }: ClientCodec): CanonicalRequest {
  const json: JsonObject = { model: 'model' };
  const includeUsage = dialect === 'responses' || dialect === 'messages';
  const facts = { dialect, text: JSON.stringify(json), json, reads: { own: new Set(['model']) }, model: 'model' };
  return { ...facts, stream: true, items: [], tools: [], includeUsage };
}

function readRequest(
  file: string,
  client: ClientCodec,
  readFile: (path: string) => string,
  open: (sealed: string) => Opaque | undefined,
): CanonicalRequest {
  return usable(file, () => {
    const text = readFile(file);
    const json = tryJson(text);
    if (!isObject(json)) throw new RefusedError('it is not a JSON object');
    return client.decodeRequest(text, json, { open });
  });
}

/** Runs what reads the file; that it cannot be used is the mistake of whoever named it. */
function usable<T>(file: string, read: () => T): T {
  try {
    return read();
  } catch (thrown) {
    if (!(thrown instanceof RefusedError) && !(thrown instanceof GatewayError)) throw thrown;
    throw new UsageError(`convert: the request in ${file} cannot be used: ${thrown.message}`);
  }
}

const CLIENT_NAMES: ReadonlyMap<string, ClientCodec> = new Map(CLIENTS.map((codec) => [codec.dialect, codec]));
const wordsOf = (names: ReadonlyMap<string, unknown>): string => [...names.keys()].join('|');

function named<Codec>(names: ReadonlyMap<string, Codec>, option: 'from' | 'to', options: ConvertOptions): Codec {
  const found = names.get(options[option] ?? '');
  if (found === undefined) throw new UsageError(`convert: --${option} must be one of ${wordsOf(names)}`);
  return found;
}

function sizeOf(text: string | undefined): number {
  if (text === undefined) return Number.POSITIVE_INFINITY;
  const size = Number(text);
  if (!Number.isInteger(size) || size < 1) throw new UsageError('convert: --chunk must be a number of bytes, at least 1');
  return size;
}

/** What is read, a batch for each piece of at most `size` bytes. */
async function* piecesOf(input: AsyncIterable<Uint8Array>, size: number): AsyncGenerator<readonly Uint8Array[]> {
  for await (const bytes of input) {
    for (let at = 0; at < bytes.length; at += size) yield [bytes.subarray(at, at + size)];
  }
}

export const CONVERT: Verb = verb({
  name: 'convert',
  usage: `--from ${wordsOf(UPSTREAM_NAMES)} --to ${wordsOf(CLIENT_NAMES)} [--request FILE] [--chunk N] [--whole]`,
  does: 'Converts a recorded answer: the stream of an upstream on standard input, that of a client on standard output.',
  options: Convert,
  isBare: true,
  run: convert,
});
