/** The shared credentials file of AWS: sections in brackets, a name and a value a line. */
import { credentialError } from '../credential-error.ts';
import type { AwsKeys } from '../settings.ts';

/** Throws a `credentialError` where the profile is missing or has no keys of its own. */
export function profileKeys(text: string, { name, file }: { readonly name: string; readonly file: string }): AwsKeys {
  const section = sectionOf(text, name);
  if (section === undefined) throw credentialError('unreadable', `${file} has no profile ${name}`);
  const accessKeyId = section.get('aws_access_key_id');
  const secretAccessKey = section.get('aws_secret_access_key');
  if (accessKeyId === undefined || secretAccessKey === undefined)
    throw credentialError(
      'unreadable',
      `the profile ${name} of ${file} holds no keys: roles and sign-ins of profiles are not followed`,
    );
  const sessionToken = section.get('aws_session_token');
  return { accessKeyId, secretAccessKey, ...(sessionToken === undefined ? {} : { sessionToken }) };
}

function sectionOf(file: string, wanted: string): ReadonlyMap<string, string> | undefined {
  let section: Map<string, string> | undefined;
  let isWanted = false;
  for (const line of file.split(/\r?\n/)) {
    const text = line.trim();
    const end = text.indexOf(']');
    if (text.startsWith('[') && end > 0) {
      isWanted =
        text
          .slice(1, end)
          .trim()
          .replace(/^profile\s+/, '') === wanted;
      if (isWanted) section ??= new Map();
      continue;
    }
    const at = text.indexOf('=');
    const [name, value] = [text.slice(0, Math.max(0, at)).trim(), text.slice(at + 1).trim()];
    if (isWanted && /^[^#;\s]+$/.test(name) && value !== '') section?.set(name.toLowerCase(), value);
  }
  return section;
}
