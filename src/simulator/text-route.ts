/** One text request answered in its dialect: checked as the vendor would, said by a script or by the demonstration. */
import { type Answer, jsonAnswer, streamAnswer } from './answer.ts';
import { demonstrate } from './demonstration.ts';
import type { Dialect, Turn } from './dialect.ts';
import type { SimulatorContext } from './context.ts';
import type { ReceivedRequest } from './journal.ts';
import { isObject, type JsonObject } from './json.ts';
import type { Script } from './script.ts';
import { VendorError } from './vendor-error.ts';

export function turnOf(request: ReceivedRequest, context: SimulatorContext): Turn {
  return {
    body: isObject(request.body) ? request.body : {},
    model: request.model ?? '',
    createdS: Math.floor(context.now() / 1000),
    mint: context.mint,
    seals: context.seals,
    memory: context.memory,
  };
}

/** Whether the answer is streamed is the caller's to know: a body member, or (gemini) the path. */
export function answerText(
  dialect: Dialect,
  streamed: boolean,
  request: ReceivedRequest,
  script: Script | undefined,
  context: SimulatorContext,
): Answer {
  const turn = turnOf(request, context);
  const requestId = context.mint('req_');
  const headers = dialect.headers(requestId);
  try {
    const scripted = script?.reply;
    if (script?.strict ?? scripted === undefined) {
      if (!isObject(request.body)) throw malformedBody(request.text);
      dialect.check(turn);
    }
    const reply = scripted ?? demonstrate(dialect.prompt(turn), context.knowledge(), context.draw);
    const answer = streamed
      ? streamAnswer(dialect.stream(reply, turn), dialect.streamType, headers)
      : jsonAnswer(200, dialect.whole(reply, turn), headers);
    return { ...answer, failureFrame: dialect.failureFrame };
  } catch (error) {
    if (!(error instanceof VendorError)) throw error;
    return jsonAnswer(error.status, dialect.failure(error, turn), headers);
  }
}

export function malformedBody(text: string): VendorError {
  return new VendorError(
    400,
    text === ''
      ? 'We could not parse the JSON body of your request: it is empty.'
      : 'We could not parse the JSON body of your request. (HINT: This likely means you aren’t using your HTTP library correctly. The API expects a JSON payload.)',
  );
}

/** The body of a vendor's plain refusal with this status, for the fault `status` without a body. */
export function plainFailure(
  dialect: Dialect,
  status: number,
  message: string,
  code: string | undefined,
  mint: Turn['mint'],
): JsonObject | string {
  return dialect.failure(new VendorError(status, message, code === undefined ? {} : { code }), { mint });
}
