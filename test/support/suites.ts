/** Which suites a change needs: every suite of the gate, and the files that it looks at. */

/** A suite runs where the path of a changed file begins like this; one of several paths will do. */
export const SUITES: Readonly<Record<string, readonly string[]>> = {
  'npm run check': [''],
  'npm test': [''],
  'npm run test:cases': [
    'src/codecs/',
    'src/streams/',
    'test/codecs/',
    'test/support/cases',
    'test/support/case-',
    'test/support/laws',
    'test/support/sampled',
  ],
  'npm run test:linear': ['src/', 'test/slow/linear/', 'test/support/linear/'],
  'npm run test:steps': ['src/codecs/', 'src/http/request/', 'test/slow/steps', 'test/support/linear/'],
  'npm run test:clouds': ['src/http/platforms/', 'src/simulator/clouds/', 'test/e2e/', 'test/support/upstream-forms'],
  'npm run test:postgres': ['src/store/', 'test/store/', 'test/slow/postgres/'],
  'npm run test:crash -- --kills 50': ['src/store/', 'src/http/exchange/', 'src/http/videos/', 'test/slow/crash/'],
  'npm run test:crash -- --kills 20 --engine postgres': ['src/store/', 'test/slow/crash/'],
  'npm run test:faults': ['src/http/', 'src/store/', 'test/slow/faults/', 'test/support/exchange-', 'test/support/injector'],
  'npm run test:processes': [
    'src/cli/',
    'src/http/admin/',
    'src/http/config/',
    'src/http/workers/',
    'src/main.ts',
    'test/slow/processes/',
  ],
  'npm run test:poll': ['src/http/videos/', 'test/slow/video-poll'],
  'npm run test:browser': ['src/pages/', 'static/', 'test/slow/browser/'],
  'npm run test:examples': ['README.md', 'docs/', 'src/pages/', 'src/cli/', 'test/slow/examples', 'test/slow/documents'],
  'npm run test:clients': ['src/http/websocket/', 'test/clients/'],
  'npm run bench -- guard': ['src/', 'bench/', 'package-lock.json'],
};

/** The commands, in the order of the gate. */
export function suitesFor(changed: readonly string[]): string[] {
  return Object.entries(SUITES)
    .filter(([, paths]) => paths.some((path) => changed.some((file) => file.startsWith(path))))
    .map(([command]) => command);
}
