/** The response history as the endpoints use it: of one process, or of all workers (`workers-memory.ts`). */
import type { Mint } from '../../codecs/codec.ts';
import type { PastTurn } from './past-turn.ts';
import type { ResponseHistory } from './response-history.ts';

/** A turn to save; it continues the response `previousId` where there is one. */
export interface NewTurn {
  readonly id: string;
  readonly owner: string;
  readonly turn: PastTurn;
  readonly previousId?: string;
}

/** A lookup by item ids. Unlike response ids they do not name the worker that keeps them. */
export interface NamedItems {
  readonly itemIds: readonly string[];
  readonly owner: string;
  /**
   * Of all found outputs together. The result may stop beyond this, but must exceed it where more was found, so that the caller
   * can tell.
   */
  readonly maxBytes: number;
}

/** The turns of the items, by item id. */
export type TurnsByItem = ReadonlyMap<string, PastTurn>;

export interface Memory {
  /** Kept in this process. */
  readonly bytes: number;
  /** `resp_mizu_` and 32 hexadecimal characters. */
  responseId(previousId: string | undefined): string;
  /** Undefined for an id that is unknown, expired, or another owner's. */
  find(id: string, owner: string): PastTurn | undefined | Promise<PastTurn | undefined>;
  /** The turns of the items that one request names by id; without those that `find` would not find. */
  turnsOf(named: NamedItems): TurnsByItem | Promise<TurnsByItem>;
  /** Undefined when it is saved at once. Never rejects: a turn that could not be saved is unknown afterwards. */
  save(turn: NewTurn): Promise<void> | undefined;
  /** Keeps a turn in this process for a connection; see {@link ResponseHistory.keep}. */
  keep: ResponseHistory['keep'];
  close(): void;
}

export const RESPONSE_ID_PREFIX = 'resp_mizu_';

export function localMemory(history: ResponseHistory, mint: Mint): Memory {
  return {
    get bytes() {
      return history.bytes;
    },
    responseId: () => mint(RESPONSE_ID_PREFIX),
    find: (id, owner) => history.find(id, owner),
    turnsOf: ({ itemIds, owner }) => history.turnsOf(itemIds, owner),
    save({ id, owner, turn }) {
      history.save(id, owner, turn);
      return undefined;
    },
    keep: (owner, turn, bytes, onDropped) => history.keep(owner, turn, bytes, onDropped),
    close: () => history.close(),
  };
}
