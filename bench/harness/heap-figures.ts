/**
 * Loaded into a gateway with `--import` ({@link preload}): tells on a port of its own what its main thread has allocated, what
 * young collections have left of it, and how long its collector has held it up, since the process began.
 */
import { createServer, get } from 'node:http';
import { pathToFileURL } from 'node:url';
import { type GCProfilerResult, GCProfiler, getHeapStatistics } from 'node:v8';

export interface HeapFigures {
  readonly allocatedBytes: number;
  /** What two young collections have found alive, and so moved into the old generation. */
  readonly promotedBytes: number;
  readonly collectorMs: number;
}

/** Arguments for Node. */
export function preload(port: number): string[] {
  const module = `import(${JSON.stringify(pathToFileURL(import.meta.filename).href)}).then((it) => it.serveFigures(${port}))`;
  return ['--import', `data:text/javascript,${encodeURIComponent(module)}`];
}

export function serveFigures(port: number): void {
  let collectorMs = 0;
  let promotedBytes = 0;
  let profiler = profiling();
  const server = createServer((_request, response) => {
    for (const { gcType, cost, beforeGC, afterGC } of profiler.stop()?.statistics ?? []) {
      collectorMs += cost / 1000;
      if (gcType === 'Scavenge') promotedBytes += oldBytes(afterGC) - oldBytes(beforeGC);
    }
    profiler = profiling();
    const figures: HeapFigures = { allocatedBytes: allocatedBytes(), promotedBytes, collectorMs };
    response.end(JSON.stringify(figures));
  });
  server.listen(port, '127.0.0.1');
  server.unref();
}

function profiling(): GCProfiler {
  const profiler = new GCProfiler();
  profiler.start();
  return profiler;
}

function oldBytes({ heapSpaceStatistics }: GCProfilerResult['statistics'][number]['afterGC']): number {
  return heapSpaceStatistics.find(({ spaceName }) => spaceName === 'old_space')?.spaceUsedSize ?? Number.NaN;
}

/** NaN on a Node that does not count it. */
function allocatedBytes(): number {
  const figures: object = getHeapStatistics();
  return 'total_allocated_bytes' in figures ? Number(figures.total_allocated_bytes) : Number.NaN;
}

export async function readFigures(port: number): Promise<HeapFigures> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  get({ host: '127.0.0.1', port, agent: false }, (answer) => {
    let text = '';
    answer.setEncoding('utf8');
    answer.on('data', (chunk: string) => {
      text += chunk;
    });
    answer.on('end', () => resolve(text));
  }).on('error', reject);
  return JSON.parse(await promise);
}
