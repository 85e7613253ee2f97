/** One open tool call of a streamed answer, and how the arguments that vendors send in odd pieces are read. */
import { NO_ARGUMENTS } from '../../tools/arguments.ts';
import type { OpenItem } from '../../canonical/fold.ts';
import { grown } from '../../canonical/grown.ts';
import { isObjectText } from '../../canonical/json.ts';
import type { Opaque } from '../../canonical/opaque.ts';
import type { FreeformReader } from '../../tools/freeform.ts';
import type { Piece } from './call-pieces.ts';
import { ObjectScan } from './object-scan.ts';

export interface Call {
  /** The upstream's index, where it gave one. */
  readonly wireIndex: number | undefined;
  /** Undefined until the name is known, since the item cannot start before. */
  item: OpenItem | undefined;
  toolType: 'function' | 'custom';
  /** The upstream's own id. */
  upstreamId: string | undefined;
  name: string;
  /** The name may be continued by the next piece, so the item does not start yet. */
  isNamePartial: boolean;
  /** The arguments as they came. */
  input: string;
  /** They began with an empty object: a placeholder, unless nothing follows. */
  hasPlaceholder: boolean;
  /** Follows the arguments from when it was first asked whether they are whole. */
  scan: ObjectScan | undefined;
  /** Reads the text of a freeform tool out of the arguments of the function that stands for it. */
  freeform: FreeformReader | undefined;
  opaque: Opaque | undefined;
}

/**
 * True for a piece with the id of a known call that begins another one: it has another name, or the name with another index or
 * whole arguments.
 */
export function introducesAnother(known: Call, piece: Piece): boolean {
  if (piece.name === undefined || known.name === '') return false;
  if (!sameName(known, piece)) return true;
  if (piece.index !== undefined && known.wireIndex !== undefined && piece.index !== known.wireIndex) return true;
  return piece.input !== inputOf(known) && startsNewInput(known, piece);
}

/**
 * True for a first piece that is no argument yet: some models write `null` for a call without arguments (Groq), some servers an
 * empty object before the real one.
 */
export function isNoInput(call: Call, piece: string): boolean {
  if (call.input !== '' || call.toolType !== 'function') return false;
  if (call.hasPlaceholder && piece.trim() === '') return true;
  if (piece !== 'null' && piece !== NO_ARGUMENTS) return false;
  call.hasPlaceholder ||= piece === NO_ARGUMENTS;
  return true;
}

/** The arguments so far, the placeholder included. */
export function inputOf({ input, hasPlaceholder }: Call): string {
  return input === '' && hasPlaceholder ? NO_ARGUMENTS : input;
}

/** True for arguments that are not a whole object yet. */
export function isUnfinished(call: Call): boolean {
  return call.toolType === 'function' && call.input !== '' && !isWholeInput(call);
}

function isWholeInput(call: Call): boolean {
  if (call.scan === undefined) {
    call.scan = new ObjectScan();
    call.scan.push(call.input);
  }
  return call.scan.isWhole(call.input);
}

export function growInput(call: Call, piece: string): void {
  call.input = grown(call.input, piece);
  call.scan?.push(piece);
}

/**
 * True where whole arguments are followed by the beginning of an object. With a name beside it, that is another call of the same
 * tool.
 */
export function startsNewInput(call: Call, piece: Piece): boolean {
  return piece.input.trimStart().startsWith('{') && (inputOf(call) === NO_ARGUMENTS || isWholeInput(call));
}

/**
 * The part of a piece that is new. Some servers (vLLM) send the whole arguments once more at the end: where these are an object
 * and both together are not, only the rest is new. Before the last piece, only an exact repetition of everything counts as one.
 */
export function newInput({ input: known, toolType, freeform }: Call, piece: string, isLast: boolean): string {
  if (toolType === 'custom' && freeform === undefined) return piece;
  if (known === '' || piece.length < known.length || (piece.length > known.length && !isLast)) return piece;
  if (!piece.startsWith(known) || !isObjectText(piece) || isObjectText(known + piece)) return piece;
  return piece.slice(known.length);
}

export function sameName(call: Call, piece: Piece): boolean {
  return piece.name === undefined || piece.name === call.name;
}
