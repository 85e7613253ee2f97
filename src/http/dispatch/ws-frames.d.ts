/** The two halves of `ws` that its types leave out: they read and write frames on a connection that somebody else has opened. */
import type { Duplex, Writable } from 'node:stream';

declare module 'ws' {
  /** Emits `message` (data, isBinary), `ping` (data) and `conclude`; `error` where a frame is wrong. */
  export const Receiver: new (options: {
    readonly isServer: boolean;
    readonly maxPayload: number;
    /** Frames of a message; absent: any number. */
    readonly maxFragments?: number;
    /** Pieces that were written, of a frame that is not complete; absent: any number. */
    readonly maxBufferedChunks?: number;
  }) => Writable;

  export const Sender: new (
    socket: Duplex,
  ) => {
    send(data: string, options: { fin: boolean; mask: boolean; binary: boolean; compress: boolean }): void;
    pong(data: Buffer, mask: boolean): void;
    close(code: number, reason: string, mask: boolean): void;
  };
}
