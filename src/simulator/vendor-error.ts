/** A refusal in the words of a vendor; each wire file gives it its dialect's shape. */

export interface VendorErrorDetail {
  readonly param?: string | null;
  readonly code?: string | null;
  /** The dialect's error type; absent: by status. */
  readonly type?: string;
}

export class VendorError extends Error {
  override readonly name = 'VendorError';
  readonly status: number;
  readonly detail: VendorErrorDetail;

  constructor(status: number, message: string, detail: VendorErrorDetail = {}) {
    super(message);
    this.status = status;
    this.detail = detail;
  }
}

/** OpenAI's shape, used by chat, responses, embeddings and images. */
export function openAiError(error: VendorError): string {
  const type =
    error.detail.type ?? OPENAI_TYPES.get(error.status) ?? (error.status >= 500 ? 'server_error' : 'invalid_request_error');
  const { param = null, code = null } = error.detail;
  return JSON.stringify({ error: { message: error.message, type, param, code } }, null, 2);
}

const OPENAI_TYPES = new Map([
  [429, 'requests'],
  [500, 'server_error'],
  [503, 'server_error'],
]);
