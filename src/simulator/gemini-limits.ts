/** What Google refuses of schemas, calling configurations and numbers, whatever the conversation says. */
import { isArray, isObject, type JsonObject, type JsonValue, listOf, numberOf, objectOf, stringOf } from './json.ts';
import { VendorError } from './vendor-error.ts';

export function refuse(message: string): never {
  throw new VendorError(400, message);
}

const words = (text: string) => new Set(text.split(' '));
const NOT_OPENAPI = words(
  '$ref $defs $schema additionalProperties oneOf allOf const exclusiveMinimum exclusiveMaximum patternProperties not prefixItems',
);
const JSON_SCHEMA = words(
  '$id $defs $ref $anchor type format title description enum items prefixItems minItems maxItems minimum maximum anyOf oneOf properties ' +
    'additionalProperties required propertyOrdering',
);
const TYPES = words('string number integer boolean array object null');

/** `parameters` and `responseSchema` are an OpenAPI subset: JSON Schema words beyond it are unknown names. */
function checkOpenApi(schema: JsonObject, at: string): void {
  for (const word of Object.keys(schema)) {
    if (NOT_OPENAPI.has(word)) refuse(`Invalid JSON payload received. Unknown name "${word}" at '${at}': Cannot find field.`);
  }
  if (isArray(schema.type))
    refuse(
      `Invalid value at '${at}.type' (type.googleapis.com/google.ai.generativelanguage.v1beta.Type), Proto field is not repeating, cannot start list.`,
    );
  if (listOf(schema.enum).some((value) => typeof value !== 'string')) refuse(`Invalid value at '${at}.enum[0]' (TYPE_STRING)`);
  for (const [name, inner] of Object.entries(objectOf(schema.properties)))
    checkOpenApi(objectOf(inner), `${at}.properties[${name}]`);
  if (isObject(schema.items)) checkOpenApi(schema.items, `${at}.items`);
  listOf(schema.anyOf).forEach((inner, index) => {
    checkOpenApi(objectOf(inner), `${at}.any_of[${index}]`);
  });
}

/**
 * `parametersJsonSchema` and `responseJsonSchema`: the words that the vendor lists, references that lead somewhere, names that
 * exist.
 */
function checkJsonSchema(root: JsonObject, at: string): void {
  const visit = (value: JsonValue | undefined, path: string): void => {
    if (!isObject(value)) refuse(`Invalid value at '${path}': a schema must be an object.`);
    const keys = Object.keys(value);
    for (const word of keys) if (!JSON_SCHEMA.has(word)) refuse(`Unsupported JSON Schema keyword "${word}" at '${path}'.`);
    if (value.$ref !== undefined) {
      if (keys.some((key) => !key.startsWith('$'))) refuse(`Only keywords that start with $ may stand beside $ref at '${path}'.`);
      const name = /^#\/\$defs\/([^/]+)$/.exec(stringOf(value.$ref))?.[1];
      if (value.$ref !== '#' && (name === undefined || !Object.hasOwn(objectOf(root.$defs), unescaped(name))))
        refuse(`Reference ${stringOf(value.$ref)} at '${path}' cannot be resolved.`);
    }
    for (const type of isArray(value.type) ? value.type : [value.type ?? 'object'])
      if (!TYPES.has(stringOf(type).toLowerCase())) refuse(`Invalid type "${stringOf(type)}" at '${path}'.`);
    for (const each of listOf(value.enum))
      if (typeof each !== 'string' && typeof each !== 'number')
        refuse(`Invalid enum value at '${path}': strings and numbers only.`);
    if (isObject(value.properties)) {
      const missing = listOf(value.required).find((name) => !Object.hasOwn(objectOf(value.properties), stringOf(name)));
      if (missing !== undefined) refuse(`${path}.required: property is not defined: ${stringOf(missing)}`);
    }
    for (const holder of ['properties', '$defs'])
      for (const [name, inner] of Object.entries(objectOf(value[holder]))) visit(inner, `${path}.${holder}.${name}`);
    if (value.items !== undefined) visit(value.items, `${path}.items`);
    if (isObject(value.additionalProperties)) visit(value.additionalProperties, `${path}.additionalProperties`);
    for (const list of ['anyOf', 'oneOf', 'prefixItems'])
      listOf(value[list]).forEach((inner, index) => {
        visit(inner, `${path}.${list}[${index}]`);
      });
  };
  visit(root, at);
}

function unescaped(name: string): string {
  return decodeURIComponent(name).replaceAll('~1', '/').replaceAll('~0', '~');
}

export function checkConfig(config: JsonObject): void {
  const within = (name: string, least: number, most: number): void => {
    const value = numberOf(config[name]);
    if (value !== undefined && (value < least || value > most))
      refuse(`* GenerateContentRequest.generation_config.${name}: ${name} must be in the range [${least}, ${most}].\n`);
  };
  within('temperature', 0, 2);
  within('topP', 0, 1);
  within('candidateCount', 1, 8);
  within('maxOutputTokens', 1, 2 ** 31 - 1);
  within('seed', -(2 ** 31), 2 ** 31 - 1);
  within('presencePenalty', -2, 2);
  within('frequencyPenalty', -2, 2);
  const logprobs = numberOf(config.logprobs);
  if (logprobs !== undefined && config.responseLogprobs !== true)
    refuse('logprobs is only supported when response_logprobs is enabled.');
  if (logprobs !== undefined && (logprobs < 0 || logprobs > 20)) refuse('logprobs must be in the range [0, 20].');
  if (listOf(config.stopSequences).length > 5) refuse('The maximum number of stop sequences is 5.');
  if (listOf(config.stopSequences).includes('')) refuse('A stop sequence must not be empty.');
  const { responseSchema, responseJsonSchema } = config;
  if (responseSchema !== undefined && responseJsonSchema !== undefined)
    refuse('Only one of response_schema and response_json_schema can be set.');
  const isOfFormat = responseSchema !== undefined || responseJsonSchema !== undefined;
  if (isOfFormat && !['application/json', 'text/x.enum'].includes(stringOf(config.responseMimeType)))
    refuse("A response schema requires a response_mime_type of 'application/json'.");
  if (responseSchema !== undefined) checkOpenApi(objectOf(responseSchema), 'generation_config.response_schema');
  if (responseJsonSchema !== undefined) checkJsonSchema(objectOf(responseJsonSchema), 'generation_config.response_json_schema');
}

const NAME = /^[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}$/;

export function checkTools(body: JsonObject): void {
  const names = new Set<string>();
  listOf(body.tools).forEach((tool, index) => {
    const declarations = objectOf(tool).functionDeclarations ?? objectOf(tool).function_declarations;
    listOf(declarations).forEach((entry, place) => {
      const { name, parameters, parametersJsonSchema } = objectOf(entry);
      const at = `tools[${index}].function_declarations[${place}]`;
      if (typeof name !== 'string' || !NAME.test(name)) {
        refuse(
          `* GenerateContentRequest.${at}.name: [FIELD_INVALID] Invalid function name. Must start with a letter or an underscore. ` +
            'Must be alphameric (a-z, A-Z, 0-9), underscores (_), dots (.), colons (:), or dashes (-), with a maximum length of 128.\n',
        );
      }
      if (names.has(name)) refuse(`Duplicate function declaration found: ${name}`);
      names.add(name);
      if (parameters !== undefined && parametersJsonSchema !== undefined)
        refuse(`Only one of parameters and parametersJsonSchema can be set at '${at}'.`);
      if (isObject(parameters)) checkOpenApi(parameters, `${at}.parameters`);
      if (isObject(parametersJsonSchema)) checkParameters(parametersJsonSchema, `${at}.parameters_json_schema`);
    });
  });
  const calling = objectOf(objectOf(body.toolConfig ?? body.tool_config).functionCallingConfig);
  const mode = stringOf(calling.mode).toUpperCase();
  const allowed = listOf(calling.allowedFunctionNames);
  if (mode !== '' && names.size === 0) refuse('Function calling config is set without function_declarations.');
  if (allowed.length > 0 && mode !== 'ANY' && mode !== 'VALIDATED')
    refuse('Allowed function names should only be set when function calling mode is ANY.');
  const unknown = allowed.find((name) => !names.has(stringOf(name)));
  if (unknown !== undefined) refuse(`allowed_function_names: ${stringOf(unknown)} is not in function_declarations.`);
}

function checkParameters(schema: JsonObject, at: string): void {
  if (stringOf(schema.type).toLowerCase() !== 'object') refuse(`${at}: schema type should be OBJECT.`);
  checkJsonSchema(schema, at);
}
