/** Opens a listener of the gateway. */
import type { AddressInfo, Server } from 'node:net';

/** Resolves with where it listens; port 0 takes a free one. Rejects when the port cannot be had. */
export function listenOn(server: Server, host: string, port: number): Promise<AddressInfo> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => {
      server.off('error', reject);
      const address = server.address();
      if (address === null || typeof address === 'string') reject(new Error('a listener on a port has no address'));
      else resolve(address);
    });
  });
}
