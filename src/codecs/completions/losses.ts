/** What legacy completions cannot express of an answer: it is text and nothing else. */
import { coerce, drop, keep, type ResponseLosses, refuse } from '../canonical/features.ts';

const textOnly = drop('legacy completions are text only');
const noTools = refuse('The answer calls a tool, which legacy completions cannot express.');
const noMedia = refuse('The answer holds media, which legacy completions cannot express.');

export const responseLosses: ResponseLosses = {
  text: keep,
  'text phase': coerce('an empty line between texts of different phases'),
  'several texts': coerce('one text: joined as they are, or by an empty line where something stood between'),
  refusal: coerce('text'),
  'url citation with position': textOnly,
  'url citation without position': textOnly,
  'native citation': textOnly,
  'citation of an ended text': textOnly,
  logprobs: drop('completions logprobs have another shape, and asking for them is refused'),
  'text signature': textOnly,
  'reasoning: raw text': textOnly,
  'reasoning: summary': textOnly,
  'reasoning: opaque': textOnly,
  'reasoning: redacted': textOnly,
  'function call': noTools,
  'function call: namespace': noTools,
  'function call signature': noTools,
  'custom tool call': noTools,
  image: noMedia,
  'image signature': noMedia,
  audio: noMedia,
  file: noMedia,
  'native item': textOnly,
  'native items alone': refuse('The answer holds nothing that this protocol can say.'),
  'native event': textOnly,
  'usage: cache': keep,
  'usage: reasoning': keep,
  'usage: iterations': textOnly,
  'usage: unknown members': textOnly,
  'completed: stop sequence': coerce('finish reason stop'),
  'completed: tool use': noTools,
  'incomplete: max output': keep,
  'incomplete: content filter': keep,
  'incomplete: context window': coerce('finish reason length'),
  'incomplete: pause': coerce('finish reason stop'),
  'incomplete: compaction': coerce('finish reason stop'),
  'failed with partial output': coerce('what was written, then an error'),
  cancelled: coerce('an error'),
  'service tier': textOnly,
};
