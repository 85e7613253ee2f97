/** A gateway with videos, a real store and an account that has money, in a process of its own: its longest turn can be asked for. */
import { VideoGateway } from '../../../http/videos/video-gateway.ts';
import { TurnWatch } from '../../../support/turn-watch.ts';

const closing: unknown[] = [];
const gateway = await VideoGateway.start({ after: (close) => void closing.push(close) });
await gateway.addAccount('attacker', '100000', 'sk-mizu-test');
const watch = new TurnWatch();
process.on('message', async (asked: 'watch' | 'longest' | 'close') => {
  if (asked === 'watch') {
    watch.start();
    process.send?.(0);
  }
  if (asked === 'longest') process.send?.(watch.stop());
  if (asked !== 'close') return;
  for (const close of closing) if (typeof close === 'function') await close();
  process.exit();
});
process.send?.(`http://127.0.0.1:${gateway.running.port}`);
