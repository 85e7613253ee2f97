/** A WebSocket that says why before it closes on a message that is too large: a bare 1009 makes clients try again with the same message. */
import { WebSocket } from 'ws';

const TOO_LARGE = 1009;

export class ClientSocket extends WebSocket {
  /** Called while something may still be said. */
  onTooLarge: () => void = () => undefined;

  /** The receiver closes with a code alone; what a client closed with is echoed with its reason. */
  override close(code?: number, reason?: string | Buffer): void {
    if (code === TOO_LARGE && reason === undefined && this.readyState === WebSocket.OPEN) this.onTooLarge();
    super.close(code, reason);
  }
}
