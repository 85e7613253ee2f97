/**
 * The examples of the pages: for each protocol a request, written in four languages. curl and Go are made from the request
 * itself; Python and TypeScript are files of `static/examples/`, since they show the vendors' own SDKs. `__BASE_URL__` and
 * `__MODEL__` stand where the pages put the reader's values.
 */

export const BASE_URL = '__BASE_URL__';
export const MODEL = '__MODEL__';

export const LANGUAGES = [
  { id: 'curl', title: 'curl', extension: 'sh' },
  { id: 'python', title: 'Python', extension: 'py' },
  { id: 'typescript', title: 'TypeScript', extension: 'ts' },
  { id: 'go', title: 'Go', extension: 'go' },
] as const;
export type Language = (typeof LANGUAGES)[number]['id'];

export interface ExampleRequest {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** JSON; without single quotes and backticks, which would end the string that it stands in. */
  readonly body?: object;
}

/** One protocol. Without `request`, every language is a file. */
export interface ProtocolExample {
  readonly id: string;
  readonly title: string;
  /** Endpoints of the reference that it belongs to, by id; it is shown at the first. */
  readonly endpoint: string;
  readonly request?: ExampleRequest;
}

const QUESTION = 'Why is the sea blue?';

/** The three that the home page shows come first. */
export const PROTOCOL_EXAMPLES: readonly ProtocolExample[] = [
  {
    id: 'responses',
    title: 'Responses',
    endpoint: 'create-response',
    request: { method: 'POST', path: '/v1/responses', body: { model: MODEL, input: QUESTION } },
  },
  {
    id: 'chat-completions',
    title: 'Chat completions',
    endpoint: 'create-chat-completion',
    request: {
      method: 'POST',
      path: '/v1/chat/completions',
      body: { model: MODEL, messages: [{ role: 'user', content: QUESTION }] },
    },
  },
  {
    id: 'messages',
    title: 'Messages',
    endpoint: 'create-message',
    request: {
      method: 'POST',
      path: '/v1/messages',
      headers: { 'anthropic-version': '2023-06-01' },
      body: { model: MODEL, max_tokens: 1024, messages: [{ role: 'user', content: QUESTION }] },
    },
  },
  { id: 'responses-websocket', title: 'Responses over WebSocket', endpoint: 'connect-responses' },
  {
    id: 'compact',
    title: 'Compaction',
    endpoint: 'compact-response',
    request: {
      method: 'POST',
      path: '/v1/responses/compact',
      body: { model: MODEL, input: [{ role: 'user', content: QUESTION }] },
    },
  },
  {
    id: 'image-generations',
    title: 'Image generation',
    endpoint: 'create-image',
    request: {
      method: 'POST',
      path: '/v1/images/generations',
      body: { model: MODEL, prompt: 'A harbour at dawn, woodcut', size: '1024x1024' },
    },
  },
  { id: 'image-edits', title: 'Image editing', endpoint: 'edit-image' },
  {
    id: 'embeddings',
    title: 'Embeddings',
    endpoint: 'create-embedding',
    request: { method: 'POST', path: '/v1/embeddings', body: { model: MODEL, input: ['high water', 'low water'] } },
  },
  {
    id: 'completions',
    title: 'Legacy completions',
    endpoint: 'create-completion',
    request: { method: 'POST', path: '/v1/completions', body: { model: MODEL, prompt: 'The tide comes in', max_tokens: 64 } },
  },
  {
    id: 'videos',
    title: 'Video',
    endpoint: 'create-video',
    request: {
      method: 'POST',
      path: '/v1/videos',
      headers: { 'Idempotency-Key': 'one-key-for-each-video' },
      body: { model: MODEL, prompt: 'Waves against a pier, slow motion', duration: 6 },
    },
  },
  { id: 'models', title: 'Models', endpoint: 'list-models', request: { method: 'GET', path: '/v1/models' } },
  {
    id: 'balance',
    title: 'Balance',
    endpoint: 'read-balance',
    request: { method: 'GET', path: '/user/balance' },
  },
];

/** The curl command of a request. */
export function curlOf({ method, path, headers = {}, body }: ExampleRequest): string {
  const lines = [`curl ${BASE_URL}${path}`, '-H "Authorization: Bearer $MIZU_API_KEY"'];
  for (const [name, value] of Object.entries(headers)) lines.push(`-H "${name}: ${value}"`);
  if (method === 'POST') lines.push('-H "Content-Type: application/json"');
  if (body !== undefined) lines.push(`-d '${JSON.stringify(body, null, 2)}'`);
  return lines.join(' \\\n  ');
}

/** A whole Go program, in gofmt's own layout, on the standard library alone. */
export function goOf({ method, path, headers = {}, body }: ExampleRequest): string {
  const imports = ['fmt', 'io', 'net/http', 'os', ...(body === undefined ? [] : ['strings'])];
  const set = Object.entries({ ...headers, ...(body === undefined ? {} : { 'Content-Type': 'application/json' }) });
  return [
    'package main',
    '',
    'import (',
    ...imports.map((name) => `\t"${name}"`),
    ')',
    '',
    'func main() {',
    ...(body === undefined ? [] : [`\tbody := strings.NewReader(\`${JSON.stringify(body, null, 2)}\`)`]),
    `\trequest, err := http.NewRequest("${method}", "${BASE_URL}${path}", ${body === undefined ? 'nil' : 'body'})`,
    '\tif err != nil {',
    '\t\tpanic(err)',
    '\t}',
    '\trequest.Header.Set("Authorization", "Bearer "+os.Getenv("MIZU_API_KEY"))',
    ...set.map(([name, value]) => `\trequest.Header.Set("${name}", "${value}")`),
    '\tresponse, err := http.DefaultClient.Do(request)',
    '\tif err != nil {',
    '\t\tpanic(err)',
    '\t}',
    '\tdefer response.Body.Close()',
    '\tanswer, err := io.ReadAll(response.Body)',
    '\tif err != nil {',
    '\t\tpanic(err)',
    '\t}',
    '\tfmt.Println(response.Status, string(answer))',
    '}',
  ].join('\n');
}
