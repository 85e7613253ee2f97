/** A file with a secret that its owner replaces now and then: it is read for each use, and what it holds is never quoted. */
import { readFile } from 'node:fs/promises';
import { credentialError } from './credential-error.ts';

const MAX_BYTES = 1024 * 1024;

/** Without white space at its ends. Rejects with a `credentialError`. */
export async function readSecretFile(path: string): Promise<string> {
  let text: string;
  try {
    text = (await readFile(path, 'utf8')).trim();
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? ` (${String(error.code)})` : '';
    throw credentialError('unavailable', `the file ${path} cannot be read${code}`);
  }
  if (text === '' || text.length > MAX_BYTES) throw credentialError('unreadable', `the file ${path} is empty or too large`);
  return text;
}
