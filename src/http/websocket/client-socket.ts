/**
 * A WebSocket that sends an error before it closes on a message that is too large: on a bare 1009 clients send the same message
 * again.
 */
import { WebSocket } from 'ws';

const TOO_LARGE = 1009;

export class ClientSocket extends WebSocket {
  /** Called while messages can still be sent. */
  onTooLarge: () => void = () => undefined;

  /** `ws` closes a too large message with a code but no reason; a close by the client is echoed with its reason. */
  override close(code?: number, reason?: string | Buffer): void {
    if (code === TOO_LARGE && reason === undefined && this.readyState === WebSocket.OPEN) this.onTooLarge();
    super.close(code, reason);
  }
}
