/** Which Channels compact a conversation by asking its model for a summary. */
import type { Channel, Model } from '../config/config.ts';

export function bySummary({ options }: Channel, model: Model): boolean {
  return (options.compaction ?? model.compaction) === 'summary';
}
