/**
 * A gateway in a process of its own, for tests of memory and of the event loop. Argument: the upstream's URL. Says `{port}`, then
 * answers each message with what it saw since the last one.
 */
import { testGateway } from '../../support/test-gateway.ts';

const [, , upstream = '', type = 'openai_image'] = process.argv;
const gateway = await testGateway(
  {
    channels: [
      {
        id: 'one',
        type,
        base_url: upstream,
        api_key: 'k',
        models: ['native'],
        options: type === 'responses' ? { image_enable_openai_generation_tool: true } : {},
      },
    ],
    models: { native: { kind: 'image', price: { input: '1', output: '2' } } },
  },
  { level: 'error' },
);

let longestMs = 0;
let peakRss = 0;
let before = process.threadCpuUsage();

/** Processor time of this thread in one turn of the loop: what other processes do to the machine does not count. */
function watch(): void {
  const now = process.threadCpuUsage();
  longestMs = Math.max(longestMs, (now.user + now.system - before.user - before.system) / 1000);
  before = now;
  setImmediate(watch);
}
watch();
setInterval(() => {
  peakRss = Math.max(peakRss, process.memoryUsage.rss());
}, 5).unref();

process.on('message', () => {
  globalThis.gc?.();
  process.send?.({ longestMs, peakRss, rss: process.memoryUsage.rss() });
  longestMs = 0;
  peakRss = 0;
  before = process.threadCpuUsage();
});
process.on('disconnect', () => process.exit(0));
process.send?.({ port: Number(new URL(gateway.url).port) });
