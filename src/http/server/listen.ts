/** Opens a listener of the gateway. */
import type { AddressInfo, Server } from 'node:net';

/** Which listener it is, and where its port is set: what an operator needs to know when it cannot be had. */
export interface ListenerName {
  readonly what: string;
  readonly setting: string;
}

/**
 * Resolves with where it listens; port 0 takes a free one. Rejects when the port cannot be had, in words that name the way out.
 */
export function listenOn(server: Server, host: string, port: number, name: ListenerName): Promise<AddressInfo> {
  return new Promise((resolve, reject) => {
    const fail = (error: Error): void => reject(explained(error, host, port, name));
    server.once('error', fail);
    server.listen(port, host, () => {
      server.off('error', fail);
      const address = server.address();
      if (address === null || typeof address === 'string') reject(new Error('a listener on a port has no address'));
      else resolve(address);
    });
  });
}

/** The same error with its code and system call, by which programs know it. */
function explained(error: Error, host: string, port: number, { what, setting }: ListenerName): Error {
  if (!('code' in error) || error.code !== 'EADDRINUSE') return error;
  error.message = `${error.message}: another program has port ${port} of ${host}, which is for ${what}. Stop it, or set ${setting} to a free port`;
  return error;
}
