/** Building blocks of the configuration's schema. */
import { Type } from 'typebox';

export const closed = { additionalProperties: false } as const;

export const Milliseconds = (description: string, fallback: number) =>
  Type.Optional(Type.Integer({ minimum: 1, maximum: 86_400_000, default: fallback, description }));
export const Text = (description: string) => Type.String({ minLength: 1, description });

export const Timeouts = Type.Object(
  {
    connect_ms: Milliseconds('The time to connect, TLS included.', 10_000),
    first_data_ms: Milliseconds(
      'The time to the first data event or, without a stream, to the answer. Comments do not count.',
      600_000,
    ),
    idle_ms: Milliseconds('The longest silence between bytes once data flows.', 120_000),
    write_stall_ms: Milliseconds('A client that takes nothing for this long is let go.', 60_000),
  },
  closed,
);

/** The name of a header, as a pattern. */
export const HeaderName = "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$";
