/** The generative-content upstream: what Google refuses, and how a request is read. */
import type { Dialect, Prompt, Turn } from './dialect.ts';
import { geminiStream, geminiWhole } from './gemini-wire.ts';
import { isArray, isObject, type JsonObject, type JsonValue, listOf, numberOf, objectOf, stringOf } from './json.ts';
import { checkConfig, checkTools, refuse } from './gemini-limits.ts';

export const gemini: Dialect = {
  check,
  prompt,
  stream: geminiStream,
  whole: geminiWhole,
  failure: (error) =>
    `${JSON.stringify({ error: { code: error.status, message: error.message, status: error.detail.type ?? STATUSES.get(error.status) ?? 'INTERNAL' } }, null, 2)}\n`,
  // The vendor writes a failure raw into the stream, on several lines and without `data:`.
  failureFrame: (
    _before,
    error = { error: { code: 503, message: 'The model is overloaded. Please try again later.', status: 'UNAVAILABLE' } },
  ) => ({
    part: 'content',
    text: `${JSON.stringify(error, null, 2)}\r\n\r\n`,
  }),
  headers: (requestId) => ({
    'x-gemini-service-tier': 'standard',
    'x-goog-request-id': requestId,
    vary: 'Origin, X-Origin, Referer',
  }),
  streamType: 'text/event-stream',
};

const STATUSES = new Map([
  [400, 'INVALID_ARGUMENT'],
  [401, 'UNAUTHENTICATED'],
  [403, 'PERMISSION_DENIED'],
  [404, 'NOT_FOUND'],
  [429, 'RESOURCE_EXHAUSTED'],
  [503, 'UNAVAILABLE'],
  [504, 'DEADLINE_EXCEEDED'],
]);

/** The documented values that pass the signature check for calls of another model. */
const SKIP = new Set(['skip_thought_signature_validator', 'context_engineering_is_the_way_to_go']);

const words = (text: string) => new Set(text.split(' '));
const TOP = words(
  'contents systemInstruction system_instruction tools toolConfig tool_config safetySettings safety_settings cachedContent cached_content generationConfig generation_config serviceTier labels store continuationToken model',
);
const GENERATION = words(
  'temperature topP topK candidateCount maxOutputTokens stopSequences presencePenalty frequencyPenalty seed responseLogprobs logprobs responseMimeType ' +
    'responseSchema responseJsonSchema _responseJsonSchema responseModalities mediaResolution speechConfig imageConfig thinkingConfig enableEnhancedCivicAnswers audioTimestamp routingConfig',
);
const DATA = [
  'text',
  'inlineData',
  'inline_data',
  'fileData',
  'file_data',
  'functionCall',
  'function_call',
  'functionResponse',
  'function_response',
  'executableCode',
  'codeExecutionResult',
  'toolCall',
  'toolResponse',
];
const PART = new Set([...DATA, 'thought', 'thoughtSignature', 'thought_signature', 'videoMetadata', 'mediaResolution']);
function refuseUnknown(object: JsonObject, known: ReadonlySet<string>, at: string): void {
  for (const name of Object.keys(object)) {
    if (!known.has(name))
      refuse(`Invalid JSON payload received. Unknown name "${name}"${at === '' ? '' : ` at '${at}'`}: Cannot find field.`);
  }
}

function check(turn: Turn): void {
  const { body } = turn;
  refuseUnknown(body, TOP, '');
  const config = generationOf(body);
  refuseUnknown(config, GENERATION, 'generation_config');
  if (!isArray(body.contents) || body.contents.length === 0)
    refuse('* GenerateContentRequest.contents: contents is not specified\n');
  const contents = body.contents.map(objectOf);
  contents.forEach((content, index) => {
    const role = stringOf(content.role);
    if (content.role !== undefined && !['user', 'model', 'function'].includes(role))
      refuse('Please use a valid role: user, model.');
    if (!isArray(content.parts) || content.parts.length === 0)
      refuse(`* GenerateContentRequest.contents[${index}].parts: contents.parts must not be empty.\n`);
    content.parts.forEach((part, place) => {
      checkPart(objectOf(part), index, place);
    });
  });
  checkTurns(contents);
  checkSignatures(contents, turn);
  checkTools(body);
  const thinking = objectOf(config.thinkingConfig);
  if (thinking.thinkingBudget !== undefined && thinking.thinkingLevel !== undefined) {
    refuse('You can only set only one of thinking budget and thinking level.');
  }
  checkConfig(config);
}

function checkPart(part: JsonObject, index: number, place: number): void {
  const at = `contents[${index}].parts[${place}]`;
  refuseUnknown(part, PART, at);
  const data = DATA.filter((name) => part[name] !== undefined);
  if (data.length === 0 && part.thoughtSignature === undefined)
    refuse(`* GenerateContentRequest.${at}.data: required oneof field 'data' must have one initialized field\n`);
  if (data.length > 1) refuse(`Invalid value at '${at}' (oneof), oneof field 'data' is already set. Cannot set '${data[1]}'`);
  const response = part.functionResponse;
  if (isObject(response)) {
    if (stringOf(response.name) === '') refuse(`* GenerateContentRequest.${at}.function_response.name: Name cannot be empty.\n`);
    if (!isObject(response.response))
      refuse(`Invalid value at '${at}.function_response.response' (type.googleapis.com/google.protobuf.Struct)`);
  }
  const call = part.functionCall;
  if (isObject(call) && call.args !== undefined && !isObject(call.args))
    refuse(`Invalid value at '${at}.function_call.args' (type.googleapis.com/google.protobuf.Struct)`);
  for (const value of [part.thoughtSignature, part.thought_signature, objectOf(part.inlineData).data])
    if (value !== undefined && !/^[A-Za-z0-9+/_-]*={0,2}$/.test(stringOf(value)))
      refuse(`Invalid value at '${at}' (TYPE_BYTES), Base64 decoding failed for "${stringOf(value).slice(0, 20)}"`);
  const inline = part.inlineData;
  if (isObject(inline) && stringOf(inline.mimeType) === '') refuse(`Unsupported MIME type: ${stringOf(inline.mimeType)}`);
}

const partsOf = (content: JsonObject | undefined) => listOf(content?.parts).map(objectOf);
const callsOf = (content: JsonObject | undefined) => partsOf(content).filter(({ functionCall }) => functionCall !== undefined);
const resultsOf = (content: JsonObject | undefined) =>
  partsOf(content).filter(({ functionResponse }) => functionResponse !== undefined);

const namesOf = (parts: readonly JsonObject[], member: string) =>
  parts
    .map((part) => stringOf(objectOf(part[member]).name))
    .sort()
    .join(' ');

function checkTurns(contents: readonly JsonObject[]): void {
  contents.forEach((content, index) => {
    const calls = callsOf(content).length;
    if (calls > 0) {
      const before = contents[index - 1];
      if (before === undefined || before.role === 'model') {
        refuse('Please ensure that function call turn comes immediately after a user turn or after a function response turn.');
      }
      const results = resultsOf(contents[index + 1]);
      if (results.length !== calls) {
        refuse(
          'Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.',
        );
      }
      if (namesOf(results, 'functionResponse') !== namesOf(callsOf(content), 'functionCall'))
        refuse('Please ensure that the function responses are those of the functions of the function call turn.');
    }
    if (resultsOf(content).length > 0 && callsOf(contents[index - 1]).length === 0) {
      refuse('Please ensure that function response turn comes immediately after a function call turn.');
    }
  });
}

/** The first call of every step of the current turn must carry its signature; whatever is sent must be this vendor's own. */
function checkSignatures(contents: readonly JsonObject[], turn: Turn): void {
  const start = contents.findLastIndex((content) => content.role !== 'model' && resultsOf(content).length === 0);
  contents.forEach((content, index) => {
    partsOf(content).forEach((part, place) => {
      const value = part.thoughtSignature ?? part.thought_signature;
      const name = stringOf(objectOf(part.functionCall).name);
      const isCall = part.functionCall !== undefined;
      if (typeof value === 'string' && !SKIP.has(value)) {
        if (!turn.seals.accepts(isCall ? 'call' : 'text', isCall ? name : '', value)) refuse('Corrupted thought signature.');
        return;
      }
      const first = isCall && callsOf(content)[0] === part;
      if (first && index > start && value === undefined && thinks(turn)) {
        refuse(
          'Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, and missing ' +
            'thought_signature may lead to degraded model performance. Additional data, function call ' +
            `\`default_api:${name}\` , position ${place + 1}. Please refer to https://ai.google.dev/gemini-api/docs/thought-signatures for more details.`,
        );
      }
    });
  });
}

function generationOf(body: JsonObject): JsonObject {
  return objectOf(body.generationConfig ?? body.generation_config);
}

/** Thinking is on when asked for, and always on models of the third generation unless the budget is 0. */
function thinks({ body, model }: Turn): boolean {
  const thinking = objectOf(generationOf(body).thinkingConfig);
  if (thinking.thinkingBudget === 0) return false;
  return (
    model.startsWith('gemini-3') ||
    thinking.includeThoughts === true ||
    thinking.thinkingLevel !== undefined ||
    thinking.thinkingBudget !== undefined
  );
}

function prompt(turn: Turn): Prompt {
  const { body } = turn;
  const contents = listOf(body.contents).map(objectOf);
  const config = generationOf(body);
  const lastUser = contents.findLast((content) => content.role !== 'model' && resultsOf(content).length === 0);
  const results = resultsOf(contents.at(-1)).map(({ functionResponse }) => objectOf(functionResponse));
  const calling = objectOf(objectOf(body.toolConfig ?? body.tool_config).functionCallingConfig);
  const allowed = stringOf(listOf(calling.allowedFunctionNames)[0]);
  const mode = stringOf(calling.mode).toUpperCase();
  return {
    text: `${JSON.stringify(body.systemInstruction ?? '')}${JSON.stringify(body.contents)}`,
    lastUserText: partsOf(lastUser)
      .map(({ text }) => stringOf(text))
      .join(''),
    tools: listOf(body.tools).flatMap((tool) => declarationsOf(objectOf(tool))),
    toolChoice: mode === 'NONE' ? 'none' : mode !== 'ANY' ? 'auto' : allowed === '' ? 'required' : { name: allowed },
    parallel: true,
    toolResults: results.map(({ name, response }) => ({ name: stringOf(name), text: resultText(objectOf(response)) })),
    maxTokens: numberOf(config.maxOutputTokens),
    stop: listOf(config.stopSequences).map(stringOf),
    seed: numberOf(config.seed),
    temperature: numberOf(config.temperature),
    topLogprobs: config.responseLogprobs === true ? (numberOf(config.logprobs) ?? 0) : undefined,
    reasoning: thinks(turn)
      ? { raw: false, summary: objectOf(config.thinkingConfig).includeThoughts === true, opaque: true }
      : undefined,
    answerSchema: answerSchema(config),
    drawImage: listOf(config.responseModalities).some((modality) => stringOf(modality).toUpperCase() === 'IMAGE'),
  };
}

function answerSchema(config: JsonObject): JsonObject | undefined {
  if (config.responseMimeType !== 'application/json') return undefined;
  return objectOf(config.responseJsonSchema ?? config.responseSchema);
}

function resultText(response: JsonObject): string {
  const value: JsonValue = response.output ?? response.result ?? response.error ?? response;
  return typeof value === 'string' ? value : JSON.stringify(value);
}

function declarationsOf(tool: JsonObject): Prompt['tools'] {
  return listOf(tool.functionDeclarations ?? tool.function_declarations).map((entry) => {
    const { name, parameters, parametersJsonSchema } = objectOf(entry);
    return { name: stringOf(name), custom: false, schema: objectOf(parametersJsonSchema ?? parameters) };
  });
}
