/** Messages of `application/vnd.amazon.eventstream` as Bedrock writes them. */
import { crc32 } from 'node:zlib';
import type { Answer } from '../answer.ts';
import type { Frame } from '../frame.ts';

/** One message; every header is a text. */
function eventStreamMessage(headers: Readonly<Record<string, string>>, payload: string): Buffer {
  const head = Buffer.concat(
    Object.entries(headers).map(([name, value]) => {
      const text = Buffer.from(value);
      const length = Buffer.alloc(2);
      length.writeUInt16BE(text.length);
      return Buffer.concat([Buffer.of(Buffer.byteLength(name)), Buffer.from(name), Buffer.of(7), length, text]);
    }),
  );
  const body = Buffer.from(payload);
  const message = Buffer.alloc(16 + head.length + body.length);
  message.writeUInt32BE(message.length, 0);
  message.writeUInt32BE(head.length, 4);
  message.writeUInt32BE(crc32(message.subarray(0, 8)), 8);
  head.copy(message, 12);
  body.copy(message, 12 + head.length);
  message.writeUInt32BE(crc32(message.subarray(0, message.length - 4)), message.length - 4);
  return message;
}

/** An event of the messages protocol inside a chunk, padded to hide its length. */
export function chunkMessage(json: string): Buffer {
  const bytes = Buffer.from(json).toString('base64');
  const headers = { ':event-type': 'chunk', ':content-type': 'application/json', ':message-type': 'event' };
  return eventStreamMessage(
    headers,
    JSON.stringify({ bytes, p: 'abcdefghijklmnopqrstuvwxyz'.slice(0, 2 + (bytes.length % 20)) }),
  );
}

/** A failure inside a stream that has begun. */
export function exceptionMessage(name: string, message: string): Buffer {
  const headers = { ':exception-type': name, ':content-type': 'application/json', ':message-type': 'exception' };
  return eventStreamMessage(headers, JSON.stringify({ message }));
}

/** A failure that no exception is modelled for. */
export function errorMessage(code: string, message: string): Buffer {
  return eventStreamMessage({ ':message-type': 'error', ':error-code': code, ':error-message': message }, '');
}

const DATA = /(?:^|\n)data: ([^\n]*)/;

/** A frame of an SSE stream; comments and signs of life have no place here. */
function framed(frame: Frame): Frame {
  const json = DATA.exec(frame.text)?.[1];
  if (json === undefined || json === '{"type": "ping"}') return { part: 'comment', text: '' };
  return { part: frame.part, text: '', bytes: chunkMessage(json) };
}

/** The same answer in this framing. */
export function asEventStream(answer: Answer): Answer {
  if (!answer.streamed) return answer;
  const { failureFrame } = answer;
  return {
    ...answer,
    headers: { ...answer.headers, 'content-type': 'application/vnd.amazon.eventstream' },
    frames: answer.frames.map(framed),
    ...(failureFrame === undefined ? {} : { failureFrame: (before, error) => framed(failureFrame(before, error)) }),
  };
}

/** A stream of events in this framing, each of its pieces by itself; what is no event stream stays as it is. */
export function rawAsEventStream(answer: Answer): Answer {
  if (answer.headers['content-type'] !== 'text/event-stream' || answer.status !== 200) return answer;
  const frames = answer.frames.flatMap(({ text, bytes, part }) =>
    (bytes === undefined ? text : Buffer.from(bytes).toString())
      .split(/(?<=\n\n)/)
      .map((event): Frame => ({ part, text: event })),
  );
  return asEventStream({ ...answer, frames });
}
