/**
 * The options of a Channel behind a cloud: where the platform is, and the credential that it is asked with. A credential has one
 * source; `url` replaces the address that the source is asked at, which is otherwise fixed.
 */
import { type TProperties, Type } from 'typebox';
import { closed, Text, withDefault } from './schema-terms.ts';

const Url = (description: string) => Type.Optional(Type.String({ pattern: '^https?://', description }));
const PathTo = (description: string) => Type.Optional(Text(description));

function source<Keys extends TProperties>(description: string, keys: Keys) {
  return Type.Optional(Type.Object(keys, { ...closed, description }));
}

function credentials<Sources extends TProperties>(sources: Sources) {
  return Type.Object(sources, {
    ...closed,
    minProperties: 1,
    maxProperties: 1,
    description: 'What signs the Channel’s requests: exactly one source.',
  });
}

const AwsCredentials = credentials({
  static: source('Fixed keys.', {
    access_key_id: Text('The id of the access key.'),
    secret_access_key: Text('Its secret.'),
    session_token: Type.Optional(Text('The token of a temporary key.')),
  }),
  profile: source('A profile of the shared credentials file. The file is read again when it changes.', {
    name: withDefault(Text('The name of the profile.'), 'default'),
    file: PathTo('The path of the file. If absent, `AWS_SHARED_CREDENTIALS_FILE`, else `~/.aws/credentials`.'),
  }),
  environment: source(
    '`AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY` and `AWS_SESSION_TOKEN`, read when the configuration is.',
    {},
  ),
  web_identity: source('A role for a token of another issuer, from a file, as EKS mounts it for a service account.', {
    role_arn: Type.Optional(Text('The role. If absent, `AWS_ROLE_ARN`.')),
    token_file: PathTo(
      'A file with the token. It is read again for each exchange. If absent, `AWS_WEB_IDENTITY_TOKEN_FILE` names it.',
    ),
    session_name: withDefault(Text('What the session is called in the logs of AWS.'), 'mizu'),
    url: Url('The token endpoint. If absent, `https://sts.REGION.amazonaws.com`.'),
  }),
  container: source('The role of the container (ECS, EKS Pod Identity).', {
    url: Url(
      'The address that gives the keys. If absent, it comes from `AWS_CONTAINER_CREDENTIALS_FULL_URI` or `…_RELATIVE_URI`.',
    ),
    token_file: PathTo('A file with the token for it. If absent, `AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE` names it.'),
  }),
  instance: source('The role of the instance (EC2), by the second version of its metadata service.', {
    url: Url('The origin of the metadata service. If absent, `http://169.254.169.254`.'),
  }),
});

const GoogleCredentials = credentials({
  service_account: source('The key of a service account.', {
    key: Text('The key file as JSON; best read from a file, as secrets are.'),
    url: Url('The token endpoint. If absent, `https://oauth2.googleapis.com/token`.'),
  }),
  workload_identity: source('Workload identity federation: a token of another issuer is exchanged.', {
    audience: Text('The provider, as `//iam.googleapis.com/projects/…/providers/…`.'),
    token_file: PathTo('A file with the issuer’s token. It is read again for each exchange.'),
    token_url: Url('Where the issuer gives its token, instead of a file.'),
    token_headers: Type.Optional(Type.Record(Type.String(), Type.String(), { description: 'Headers of the request for it.' })),
    token_field: Type.Optional(Text('The member of its JSON answer that is the token. If absent, the whole answer.')),
    token_type: withDefault(Text('The type of that token.'), 'urn:ietf:params:oauth:token-type:jwt'),
    service_account: Type.Optional(Text('The e-mail address of a service account to act as.')),
    url: Url('The token endpoint. If absent, `https://sts.googleapis.com/v1/token`.'),
    impersonation_url: Url(
      'The origin that lends a service account’s token. If absent, `https://iamcredentials.googleapis.com`.',
    ),
  }),
  metadata: source('The service account of the machine, by its metadata server.', {
    url: Url('The origin of the metadata server. If absent, `http://metadata.google.internal`.'),
  }),
});

const AzureCredentials = credentials({
  client_secret: source('An app registration with a secret.', {
    tenant_id: Text('The tenant.'),
    client_id: Text('The application.'),
    client_secret: Text('Its secret.'),
    url: Url('The origin of Microsoft Entra. If absent, `https://login.microsoftonline.com`.'),
  }),
  workload_identity: source('A federated token from a file, as Kubernetes mounts it.', {
    tenant_id: Text('The tenant.'),
    client_id: Text('The application.'),
    token_file: Text('A file with the token. It is read again for each exchange.'),
    url: Url('The origin of Microsoft Entra. If absent, `https://login.microsoftonline.com`.'),
  }),
});

/** A part of a host name or of a path, which nothing can be put into. */
const Word = (description: string) => Type.String({ pattern: '^[A-Za-z0-9][A-Za-z0-9._:-]*$', description });
const Place = (description: string) => Type.String({ pattern: '^[a-z][a-z0-9-]*$', description });

export const PLATFORM_OPTIONS = {
  bedrock: {
    region: Place('The region, as `us-east-1`: part of the address and of the signature.'),
    credentials: Type.Optional(AwsCredentials),
  },
  vertex: {
    project: Word('The project that is billed, by its id or number.'),
    location: Place('The location, as `us-east5`, `us`, `eu` or `global`: part of the address and of the path.'),
    api_version: Type.Optional(
      Type.Union([Type.Literal('v1'), Type.Literal('v1beta1')], {
        description: 'The version of the interface. If absent, `v1` for messages and `v1beta1` for gemini.',
      }),
    ),
    credentials: GoogleCredentials,
  },
  azure: {
    deployment: Type.Optional(
      Word('The deployment that serves all models of this Channel. If absent, the upstream’s name for the model.'),
    ),
    api_version: Type.Optional(
      Word('The version of the interface, as `2024-10-21`, with the deployment in the path. If absent, the `v1` interface.'),
    ),
    credentials: Type.Optional(AzureCredentials),
  },
} as const;

/** The address that follows from the options, where there is one. */
export const PLATFORM_ADDRESS = {
  bedrock: Url('Replaces the address of the region, `https://bedrock-runtime.REGION.amazonaws.com`.'),
  vertex: Url('Replaces the address of the location, `https://LOCATION-aiplatform.googleapis.com`.'),
  azure: Type.String({ pattern: '^https?://', description: 'The resource, as `https://NAME.openai.azure.com`.' }),
} as const;
