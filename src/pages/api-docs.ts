/** `/apidocs` as text, made once from the API reference: contents, endpoints, agents, errors. */
import { ERRORS, type ErrorCode } from '../codecs/canonical/error.ts';
import { AGENTS, type AgentReference } from './api-reference/agents.ts';
import { aliasesOf, type EndpointReference } from './api-reference/endpoint.ts';
import { ERROR_TEXTS } from './api-reference/errors.ts';
import { LANGUAGES, PROTOCOL_EXAMPLES } from './api-reference/examples.ts';
import { codeOf, exampleBlock, exampleText, fileText, radios, UNKNOWN_MODEL } from './examples.ts';
import { fieldTable, prose } from './field-table.ts';
import { baseMeta } from './home-page.ts';
import { fillTemplate, html, type Markup } from './html.ts';

export interface ApiDocsOptions {
  readonly template: string;
  readonly exampleDirectory: URL;
  readonly baseUrl: string | undefined;
  readonly reference: readonly EndpointReference[];
}

export function createApiDocs({ template, exampleDirectory, baseUrl, reference }: ApiDocsOptions): string {
  const values = { baseUrl, model: UNKNOWN_MODEL };
  const groups = Map.groupBy(reference, ({ group }) => group);

  const examplesOf = (endpoint: EndpointReference) =>
    PROTOCOL_EXAMPLES.filter((example) => example.endpoint === endpoint.id).map((example) =>
      LANGUAGES.map(({ id, title }) =>
        exampleBlock({
          protocol: example.id,
          language: id,
          title: `${example.title}, ${title}`,
          code: codeOf(exampleText(exampleDirectory, example, id), values),
        }),
      ),
    );

  const agent = ({ id, title, protocols, note, snippets }: AgentReference) => html`<article class="entry" id="${id}">
<h3><a class="anchor" href="#${id}">${title}</a></h3>
<p>Speaks ${prose(protocols)}.${note === undefined ? '' : html` ${prose(note)}`}</p>
${snippets.map(({ where, text, file }) => {
  const code = codeOf(file === undefined ? text : fileText(exampleDirectory, file), values);
  return exampleBlock({ protocol: id, language: 'any', title: `${title}, ${where}`, code });
})}</article>
`;

  return fillTemplate(template, {
    'base-meta': baseMeta(baseUrl),
    base: baseUrl ?? 'ask the operator',
    languages: radios('language', LANGUAGES),
    contents: html`${[...groups].map(
      ([group, endpoints]) =>
        html`<li><a href="#${anchorOf(group)}">${group}</a><ul>${endpoints.map(({ id, title }) => html`<li><a href="#${id}">${title}</a></li>`)}</ul></li>
`,
    )}`,
    'agent-contents': html`${AGENTS.map(({ id, title }) => html`<li><a href="#${id}">${title}</a></li>`)}`,
    endpoints: html`${[...groups].map(
      ([group, endpoints]) =>
        html`<section class="group" id="${anchorOf(group)}"><h2>${group}</h2>
${endpoints.map((endpoint) => endpointEntry(endpoint, html`${examplesOf(endpoint)}`))}</section>
`,
    )}`,
    agents: html`${AGENTS.map(agent)}`,
    errors: errorTable(),
  });
}

function endpointEntry(endpoint: EndpointReference, examples: Markup): Markup {
  const {
    id,
    method,
    path,
    title,
    summary,
    auth,
    rules = [],
    headers = [],
    bodies = [],
    responses,
    events = [],
    errors,
  } = endpoint;
  const aliases = aliasesOf(endpoint);
  return html`<article class="entry" id="${id}">
<h3><a class="anchor" href="#${id}">${title}</a></h3>
<p class="address"><span class="method">${method}</span> <code>${path}</code>${auth === 'none' ? html` <span class="open">no key needed</span>` : ''}</p>
<p>${prose(summary)}</p>
${rules.map((rule) => html`<p>${prose(rule)}</p>`)}${examples}${
  headers.length === 0
    ? ''
    : html`<h4>Headers</h4><ul class="plain">${headers.map(({ name, required, text }) => html`<li><code>${name}</code>${required ? html` <span class="needed">required</span>` : ''}: ${prose(text)}</li>`)}</ul>`
}${endpoint.pathParameters === undefined ? '' : fieldTable(endpoint.pathParameters, `${title}: path`)}${endpoint.query === undefined ? '' : fieldTable(endpoint.query, `${title}: query`)}${bodies.map(
  ({ contentType, schema }) => fieldTable(schema, `${title}: request, ${contentType}`),
)}<h4>Answer</h4><ul class="plain">${responses.map(({ status, text }) => html`<li><b>${status}</b> ${prose(text)}</li>`)}</ul>${responses.map(
    ({ schema, status }) => (schema === undefined ? '' : fieldTable(schema, `${title}: answer ${status}`)),
  )}${
    events.length === 0
      ? ''
      : html`<h4>Events</h4><dl class="events">${events.map(({ name, text }) => html`<dt><code>${name}</code></dt><dd>${prose(text)}</dd>`)}</dl>`
  }${
    errors.length === 0
      ? ''
      : html`<h4>Errors</h4><p>${errors.map((code) => html`<a href="#error-${code}"><code>${code}</code></a> `)}</p>`
  }${aliases.length === 0 ? '' : html`<h4>Also at</h4><p class="aliases">${aliases.map((alias) => html`<code>${alias}</code> `)}</p>`}</article>
`;
}

function errorTable(): Markup {
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Error codes"><table><caption class="sr">Error codes</caption><thead><tr><th scope="col">Code</th><th scope="col">Status</th><th scope="col">Meaning</th></tr></thead><tbody>
${Object.entries(ERROR_TEXTS).map(([code, text]) => errorRow(code, ERRORS[code as ErrorCode].status, text))}</tbody></table></div>
`;
}

function errorRow(code: string, status: number, text: string): Markup {
  return html`<tr id="error-${code}"><th scope="row"><code>${code}</code></th><td>${status}</td><td>${prose(text)}</td></tr>
`;
}

function anchorOf(group: string): string {
  return group.toLowerCase().replaceAll(' ', '-');
}
