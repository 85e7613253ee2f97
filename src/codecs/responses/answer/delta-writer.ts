/**
 * Writes the deltas of texts and calls, which are most events of a stream. What surrounds the text is serialised once for each
 * part or call, so that each delta serialises its text alone. Knows nothing of logprobs, which few streams have.
 */
import { type EmitDelta, inputEvents, itemPlace, partPlace, type SentItem, type SentPart, TEXT_EVENTS } from './sent-items.ts';
import type { Growth } from '../../canonical/event.ts';
import type { JsonObject } from '../../canonical/json.ts';

interface DeltaTemplate {
  readonly subject: SentPart | SentItem;
  readonly name: string;
  readonly head: string;
  readonly tail: string;
}

export class DeltaWriter {
  readonly #emit: EmitDelta;
  #template: DeltaTemplate | undefined;

  constructor(emit: EmitDelta) {
    this.#emit = emit;
  }

  writeText(item: SentItem, part: SentPart, said: Growth): void {
    part.written.add(said.text.length);
    if (this.#template?.subject !== part) this.#template = textTemplate(item, part);
    this.#write(this.#template, said);
  }

  writeInput(item: SentItem, said: Growth): void {
    item.input.add(said.text.length);
    if (this.#template?.subject !== item) this.#template = inputTemplate(item);
    this.#write(this.#template, said);
  }

  #write({ name, head, tail }: DeltaTemplate, said: Growth): void {
    this.#emit(name, head, said, tail);
  }
}

function textTemplate(item: SentItem, part: SentPart): DeltaTemplate {
  const tail = part.type === 'output_text' ? '","logprobs":[]}' : '"}';
  return { subject: part, name: `${TEXT_EVENTS[part.type]}.delta`, head: headOf(partPlace(item, part)), tail };
}

function inputTemplate(item: SentItem): DeltaTemplate {
  return { subject: item, name: `${inputEvents(item.type)}.delta`, head: headOf(itemPlace(item)), tail: '"}' };
}

/** The members of a delta before its text, without the opening brace. */
function headOf(place: JsonObject): string {
  return `${JSON.stringify(place).slice(1, -1)},"delta":"`;
}
