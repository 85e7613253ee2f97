/**
 * Pieces of texts and of calls as events: most of what a stream says. What stands around a piece is made once for each part or call,
 * so that only the piece is written anew. Knows nothing of logprobs, which come with few streams.
 */
import { grown } from '../canonical/grown.ts';
import type { EmitPiece, PartType, ToldItem, ToldPart } from './told.ts';

interface Around {
  readonly subject: ToldPart | ToldItem;
  readonly name: string;
  readonly head: string;
  readonly tail: string;
}

const DELTAS: Readonly<Record<PartType, string>> = {
  output_text: 'response.output_text.delta',
  refusal: 'response.refusal.delta',
  reasoning_text: 'response.reasoning_text.delta',
  summary_text: 'response.reasoning_summary_text.delta',
};

export class PieceWriter {
  readonly #emit: EmitPiece;
  #around: Around | undefined;

  constructor(emit: EmitPiece) {
    this.#emit = emit;
  }

  sayText(item: ToldItem, part: ToldPart, piece: string): void {
    part.text = grown(part.text, piece);
    if (this.#around?.subject !== part) this.#around = aroundText(item, part);
    this.#say(this.#around, piece);
  }

  sayInput(item: ToldItem, piece: string): void {
    item.input = grown(item.input, piece);
    if (this.#around?.subject !== item) this.#around = aroundInput(item);
    this.#say(this.#around, piece);
  }

  #say({ name, head, tail }: Around, piece: string): void {
    this.#emit(name, head, piece, tail);
  }
}

function aroundText(item: ToldItem, part: ToldPart): Around {
  const place =
    part.type === 'summary_text' ? { summary_index: item.summary.indexOf(part) } : { content_index: item.content.indexOf(part) };
  const tail = part.type === 'output_text' ? '","logprobs":[]}' : '"}';
  return { subject: part, name: DELTAS[part.type], head: head(item, place), tail };
}

function aroundInput(item: ToldItem): Around {
  const kind = item.type === 'custom_tool_call' ? 'custom_tool_call_input' : 'function_call_arguments';
  return { subject: item, name: `response.${kind}.delta`, head: head(item, {}), tail: '"}' };
}

/** The members of a delta up to its piece, without the opening brace. */
function head(item: ToldItem, place: object): string {
  const members = JSON.stringify({ item_id: item.id, output_index: item.outputIndex, ...place });
  return `${members.slice(1, -1)},"delta":"`;
}
