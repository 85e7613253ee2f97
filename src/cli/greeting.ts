/** What `mizu serve` prints on standard output: where it listens, and how it ends. */
import type { Config } from '../http/config/config.ts';
import type { RunningGateway } from '../http/start.ts';
import { addressOf } from './demonstration.ts';

export const DRAINING = 'Draining: open answers may finish; a second signal cuts them.';
export const STOPPED = 'Stopped.';

/** Both ports, the pages, and every model. */
export function greetingOf(config: Config, { port, operationsPort }: Pick<RunningGateway, 'port' | 'operationsPort'>): string {
  return `${listensOn(config, port)}\n${placesOf(config, port, operationsPort)}`;
}

export const listensOn = ({ listen }: Config, port: number): string => `Mizu listens on ${addressOf(listen.host, port)}`;

/** What stands below the addresses of listeners; with workers their primary prints it, once. */
export function placesOf({ listen, operations, models }: Config, port: number, operationsPort: number | undefined): string {
  const url = addressOf(listen.host, port);
  return [
    `Pages: ${url}/ (prices), ${url}/apidocs, ${url}/account (usage of a key)`,
    operations === undefined || operationsPort === undefined
      ? 'Operations: off'
      : `Operations: ${addressOf(operations.host, operationsPort)} (/console, /metrics, /healthz, /channels)`,
    `Models: ${models.size === 0 ? 'none' : [...models.keys()].join(', ')}`,
  ].join('\n');
}
