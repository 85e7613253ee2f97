/** What a request is once it has passed the door of a cloud. */
import type { Answer } from '../answer.ts';
import type { ReceivedRequest } from '../journal.ts';
import type { Fault } from '../script.ts';

/** `answer`: the cloud answers by itself. */
export interface Entered {
  readonly request: ReceivedRequest;
  readonly answer?: Answer;
  /** What gives credentials or lists: only scripts that name it are for it. */
  readonly isAside?: boolean;
  readonly wrap?: (answer: Answer) => Answer;
  /** {@link wrap}, for bytes of a script in the vendor's own framing. */
  readonly wrapRaw?: (answer: Answer) => Answer;
  readonly spoken?: (fault: Extract<Fault, { type: 'status' }>) => Fault;
}

/** Undefined for a path of no cloud. */
export type Door = (request: ReceivedRequest) => Entered | undefined;
