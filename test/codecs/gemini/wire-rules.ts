/** The rules that a request body must keep, written from the protocol's notes and without any code under test. */
import assert from 'node:assert/strict';

type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
type Members = { [key: string]: Json };

const TOP = new Set(['contents', 'systemInstruction', 'tools', 'toolConfig', 'generationConfig']);
const DATA = ['text', 'inlineData', 'fileData', 'functionCall', 'functionResponse'];
const MODIFIERS = new Set(['thought', 'thoughtSignature']);
const CONFIG = new Set(
  (
    'temperature topP topK maxOutputTokens stopSequences presencePenalty frequencyPenalty seed responseLogprobs logprobs ' +
    'responseMimeType responseJsonSchema responseModalities thinkingConfig'
  ).split(' '),
);
const SCHEMA = new Set(
  (
    '$id $defs $ref $anchor type format title description enum items prefixItems minItems maxItems minimum maximum anyOf oneOf ' +
    'properties additionalProperties required propertyOrdering'
  ).split(' '),
);

/** Throws an AssertionError for the first broken rule. */
export function checkBody(text: string): void {
  const body = members(JSON.parse(text), 'body');
  for (const key of Object.keys(body)) assert.ok(TOP.has(key), `unknown member ${key}`);
  checkContents(list(body['contents'], 'contents'));
  if (body['systemInstruction'] !== undefined) {
    const parts = list(members(body['systemInstruction'], 'systemInstruction')['parts'], 'system parts');
    assert.ok(parts.length > 0);
    for (const part of parts) assert.deepEqual(Object.keys(members(part, 'system part')), ['text']);
  }
  checkTools(body);
  if (body['generationConfig'] !== undefined) checkConfig(members(body['generationConfig'], 'generationConfig'));
}

function checkContents(contents: readonly Json[]): void {
  assert.ok(contents.length > 0, 'no contents');
  const all = contents.map((content) => members(content, 'content'));
  all.forEach((content, index) => {
    assert.equal(content['role'], index % 2 === 0 ? 'user' : 'model', `role of content ${index}`);
    const parts = list(content['parts'], 'parts').map((part) => members(part, 'part'));
    assert.ok(parts.length > 0, 'empty content');
    for (const part of parts) checkPart(part, String(content['role']));
    const calls = index === 0 ? [] : partsOf(all[index - 1], 'functionCall');
    const answers = partsOf(content, 'functionResponse');
    assert.deepEqual(
      answers.map((answer) => [answer['id'], answer['name']]),
      calls.map((call) => [call['id'], call['name']]),
      `answers in content ${index}`,
    );
    const first = parts.findIndex((part) => part['functionResponse'] === undefined);
    assert.ok(first === -1 || first >= answers.length, 'answers come first');
  });
  assert.equal(partsOf(all.at(-1), 'functionCall').length, 0, 'unanswered calls at the end');
  checkSignatures(all);
}

/** Since the last content in which the user said something, the first call of each content is signed. */
function checkSignatures(contents: readonly Members[]): void {
  const start = contents.findLastIndex(
    (content) => content['role'] === 'user' && partList(content).some((part) => part['functionResponse'] === undefined),
  );
  for (const content of contents.slice(start + 1)) {
    const call = partList(content).find((part) => part['functionCall'] !== undefined);
    if (call !== undefined) assert.equal(typeof call['thoughtSignature'], 'string', 'first call of a step is unsigned');
  }
}

function checkPart(part: Members, role: string): void {
  const data = DATA.filter((key) => part[key] !== undefined);
  assert.equal(data.length, 1, `one data member, not ${Object.keys(part)}`);
  for (const key of Object.keys(part)) assert.ok(DATA.includes(key) || MODIFIERS.has(key), `unknown part member ${key}`);
  if (part['thoughtSignature'] !== undefined || part['thought'] !== undefined) assert.equal(role, 'model');
  if (part['thoughtSignature'] !== undefined) assert.ok(typeof part['thoughtSignature'] === 'string');
  if (part['text'] === '') assert.ok(part['thoughtSignature'] !== undefined, 'an empty text says nothing');
  if (part['functionCall'] !== undefined) {
    assert.equal(role, 'model');
    members(members(part['functionCall'], 'functionCall')['args'], 'args');
  }
  if (part['functionResponse'] !== undefined) {
    assert.equal(role, 'user');
    const answer = members(part['functionResponse'], 'functionResponse');
    const [key, ...others] = Object.keys(members(answer['response'], 'response'));
    assert.ok((key === 'output' || key === 'error') && others.length === 0);
    for (const nested of answer['parts'] === undefined ? [] : list(answer['parts'], 'response parts')) {
      const keys = Object.keys(members(nested, 'response part'));
      assert.ok(keys.length === 1 && (keys[0] === 'inlineData' || keys[0] === 'fileData'));
      checkMedia(members(nested, 'response part'));
    }
  }
  checkMedia(part);
}

function checkMedia(part: Members): void {
  for (const key of ['inlineData', 'fileData']) {
    if (part[key] === undefined) continue;
    const media = members(part[key], key);
    const mime = media['mimeType'];
    if (mime !== undefined || key === 'inlineData') {
      assert.match(String(mime), /^[\w.+-]+\/[\w.+-]+/);
      assert.notEqual(mime, 'application/octet-stream');
    }
    assert.equal(typeof media[key === 'inlineData' ? 'data' : 'fileUri'], 'string');
  }
}

function checkTools(body: Members): void {
  const names: string[] = [];
  for (const tool of body['tools'] === undefined ? [] : list(body['tools'], 'tools')) {
    assert.deepEqual(Object.keys(members(tool, 'tool')), ['functionDeclarations']);
    for (const one of list(members(tool, 'tool')['functionDeclarations'], 'declarations')) {
      const declaration = members(one, 'declaration');
      names.push(String(declaration['name']));
      assert.match(String(declaration['name']), /^[A-Za-z_][A-Za-z0-9_.:-]{0,63}$/);
      const schema = declaration['parametersJsonSchema'];
      if (schema === undefined) continue;
      assert.equal(members(schema, 'schema')['type'], 'object');
      checkSchema(schema, schema);
    }
  }
  assert.equal(new Set(names).size, names.length, 'names are unique');
  if (body['toolConfig'] === undefined) return;
  assert.ok(names.length > 0, 'toolConfig without tools');
  const config = members(members(body['toolConfig'], 'toolConfig')['functionCallingConfig'], 'functionCallingConfig');
  const allowed = config['allowedFunctionNames'];
  if (allowed === undefined) return;
  assert.equal(config['mode'], 'ANY');
  for (const name of list(allowed, 'allowed')) assert.ok(names.includes(String(name)));
}

function checkConfig(config: Members): void {
  for (const key of Object.keys(config)) assert.ok(CONFIG.has(key), `unknown config ${key}`);
  if (config['responseJsonSchema'] !== undefined) {
    assert.equal(config['responseMimeType'], 'application/json');
    checkSchema(config['responseJsonSchema'], config['responseJsonSchema']);
  }
  if (config['logprobs'] !== undefined) assert.ok(config['responseLogprobs'] === true && Number(config['logprobs']) <= 20);
  const thinking = config['thinkingConfig'];
  if (thinking !== undefined) {
    const keys = Object.keys(members(thinking, 'thinkingConfig'));
    assert.ok(!(keys.includes('thinkingBudget') && keys.includes('thinkingLevel')), 'budget and level together');
  }
}

/** Only supported keywords, only where a schema may stand. */
export function checkSchema(value: Json, root: Json): void {
  const schema = members(value, 'schema');
  for (const key of Object.keys(schema)) assert.ok(SCHEMA.has(key), `unsupported keyword ${key}`);
  if (schema['$ref'] !== undefined) {
    for (const key of Object.keys(schema)) assert.ok(key.startsWith('$'), `${key} beside $ref`);
    checkReference(String(schema['$ref']), root);
  }
  if (schema['type'] !== undefined) assert.equal(typeof schema['type'], 'string', 'one type');
  for (const entry of schema['enum'] === undefined ? [] : list(schema['enum'], 'enum')) {
    assert.ok(typeof entry === 'string' || typeof entry === 'number');
  }
  for (const key of ['properties', '$defs']) {
    if (schema[key] !== undefined) for (const child of Object.values(members(schema[key], key))) checkSchema(child, root);
  }
  for (const key of ['anyOf', 'oneOf', 'prefixItems']) {
    if (schema[key] !== undefined) for (const child of list(schema[key], key)) checkSchema(child, root);
  }
  if (schema['items'] !== undefined) checkSchema(schema['items'], root);
  const additional = schema['additionalProperties'];
  if (additional !== undefined && typeof additional !== 'boolean') checkSchema(additional, root);
  for (const name of schema['required'] === undefined ? [] : list(schema['required'], 'required')) {
    assert.ok(Object.hasOwn(members(schema['properties'] ?? null, 'properties'), String(name)), `required ${String(name)}`);
  }
}

function checkReference(reference: string, root: Json): void {
  if (!reference.startsWith('#/')) {
    assert.match(reference, /^#/);
    return;
  }
  const match = /^#\/\$defs\/([^/]*)$/.exec(reference);
  const name = match?.[1]?.replaceAll('~1', '/').replaceAll('~0', '~');
  assert.ok(name !== undefined && Object.hasOwn(members(members(root, 'root')['$defs'] ?? null, '$defs'), name), reference);
}

function partList(content: Members | undefined): Members[] {
  return content === undefined ? [] : list(content['parts'], 'parts').map((part) => members(part, 'part'));
}
function partsOf(content: Members | undefined, key: string): Members[] {
  return partList(content).flatMap((part) => (part[key] === undefined ? [] : [members(part[key], key)]));
}
function members(value: Json | undefined, what: string): Members {
  assert.ok(typeof value === 'object' && value !== null && !Array.isArray(value), `${what} is no object`);
  return value;
}
function list(value: Json | undefined, what: string): Json[] {
  assert.ok(Array.isArray(value), `${what} is no list`);
  return value;
}
