/** Text to bytes, a batch at a time: joined once, encoded once, one write. */

const encoder = new TextEncoder();

/** The UTF-8 bytes of all `frames`. A batch must not end inside a surrogate pair (whole frames never do). */
export function encodeText(frames: readonly string[]): Uint8Array {
  return encoder.encode(frames.length === 1 ? frames[0] : frames.join(''));
}

/** {@link encodeText} as a hop: one batch of frames in, one chunk of bytes out. */
export function textEncode(): TransformStream<readonly string[], readonly Uint8Array[]> {
  return new TransformStream(
    {
      transform(frames, controller) {
        if (frames.length > 0) controller.enqueue([encodeText(frames)]);
      },
    },
    { highWaterMark: 1 },
    { highWaterMark: 0 },
  );
}
