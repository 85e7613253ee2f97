/** Reads recorded answers of generative-content servers: server-sent events, lines of chunks, JSON bodies, raw errors. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

export const FOLDERS = ['gemini', 'gemini-vertex'];

export interface Recording {
  readonly name: string;
  readonly isStream: boolean;
  readonly text: string;
}

export function readRecordings(fixtures: string): Recording[] {
  return FOLDERS.flatMap((folder) => {
    const path = join(fixtures, 'recordings', folder);
    const names = readdirSync(path).filter((name) => name !== 'requests.jsonl');
    return names.sort().map((name) => ({
      name: `${folder}/${name}`,
      isStream: !name.endsWith('.json'),
      text: readFileSync(join(path, name), 'utf8'),
    }));
  });
}

/** The chunks of a stream, and the text that stands in it outside of any event (a raw error object). */
export function splitStream(recording: Recording): { chunks: string[]; stray: string } {
  const lines = recording.text.split(/\r\n|\n|\r/);
  if (recording.name.endsWith('.chunks.txt')) return { chunks: lines.filter((line) => line.trim() !== ''), stray: '' };
  const chunks: string[] = [];
  const stray: string[] = [];
  for (const line of lines) {
    if (line.startsWith('data:')) chunks.push(line.slice(5).trimStart());
    else if (line.trim() !== '' && !line.startsWith(':')) stray.push(line);
  }
  return { chunks, stray: stray.join('\n') };
}
