/**
 * The upstreams that tests of every dialect run over: each dialect at its vendor's own door, and behind the doors of the clouds.
 * `npm test` draws one cloud for each file, by its seed; `MIZU_FORMS=all` takes every one; `MIZU_FORMS=bedrock` (or `vertex`,
 * `azure`) puts that cloud in the place of each vendor's own door that it has, so that tests which name a dialect ask it, too.
 */
import { createHash } from 'node:crypto';
import { basename } from 'node:path';
import { CLOUD_FORMS, type CloudForm, cloudChannel, simulatedClouds } from './clouds.ts';
import { type Simulator, type SimulatorOptions, startSimulator } from '../../src/simulator/simulator.ts';

export type TextType = 'chat_completion' | 'responses' | 'messages' | 'gemini';

export interface UpstreamForm {
  /** Of its Channel and of the model that only this Channel has. */
  readonly name: string;
  readonly type: TextType;
  /** Absent: at the vendor's own door. */
  readonly cloud?: CloudForm;
}

export const PLAIN_FORMS: readonly UpstreamForm[] = (['chat_completion', 'responses', 'messages', 'gemini'] as const).map(
  (type) => ({ name: type, type }),
);

const TEXT_TYPES: ReadonlySet<string> = new Set(PLAIN_FORMS.map(({ type }) => type));
const isText = (form: CloudForm): form is CloudForm & { readonly type: TextType } => TEXT_TYPES.has(form.type);

/** With the credential that asks for the least: what tests count are the requests to models. */
export const HOSTED_FORMS: readonly UpstreamForm[] = CLOUD_FORMS.filter(isText).map((cloud) => ({
  name: `${cloud.type}-${cloud.platform}`,
  type: cloud.type,
  cloud,
}));

/** The forms for a test file, by its `import.meta.filename`. */
export function upstreamForms(file: string): readonly UpstreamForm[] {
  const wanted = process.env['MIZU_FORMS'];
  if (wanted === 'all') return [...PLAIN_FORMS, ...HOSTED_FORMS];
  if (wanted !== undefined) return PLAIN_FORMS.map((form) => standIn(form, wanted));
  const digest = createHash('sha256')
    .update(`${process.env['MIZU_SEED'] ?? Math.random()} ${basename(file)}`)
    .digest();
  const drawn = HOSTED_FORMS[digest.readUInt32BE() % HOSTED_FORMS.length];
  return drawn === undefined ? PLAIN_FORMS : [...PLAIN_FORMS, drawn];
}

/** The form of this name behind the cloud; the form itself where the cloud has none. */
function standIn(form: UpstreamForm, platform: string): UpstreamForm {
  const hosted = HOSTED_FORMS.find(({ type, cloud }) => type === form.type && cloud?.platform === platform);
  return hosted === undefined ? form : { ...hosted, name: form.name };
}

type Changes = { readonly options?: object; readonly [member: string]: unknown };

/** A Channel of this form for the simulator at this address, which has the model of its name. */
export function formChannel(form: UpstreamForm, url: string, changes: Changes = {}): object {
  const named = { id: form.name, models: [form.name], ...changes };
  return form.cloud === undefined
    ? { type: form.type, base_url: url, api_key: 'k', ...named }
    : cloudChannel(form.cloud, url, named);
}

/** The members `channels` and `models` of a configuration. */
export function formsConfig(
  forms: readonly UpstreamForm[],
  url: string,
  optionsOf: (form: UpstreamForm) => object = () => ({}),
): { readonly channels: readonly object[]; readonly models: Readonly<Record<string, object>> } {
  return {
    channels: forms.map((form) => formChannel(form, url, { options: optionsOf(form) })),
    models: Object.fromEntries(forms.map(({ name }) => [name, { price: { input: '1', output: '2' } }])),
  };
}

/** A simulator whose clouds check what they are asked with. */
export function startVendors(options: SimulatorOptions = {}): Promise<Simulator> {
  return startSimulator({ clouds: simulatedClouds(), ...options });
}
