/** What the responses endpoints need of the history: one process's, or that of all workers (`workers.ts`). */
import type { Mint } from '../../codecs/codec.ts';
import type { PastTurn } from './past-turn.ts';
import type { ResponseHistory } from './response-history.ts';

/** A turn to be remembered; it continues the response `previous.id` where there is one. */
export interface NewTurn {
  readonly id: string;
  readonly owner: string;
  readonly turn: PastTurn;
  readonly previousId?: string;
}

/** Ids of items, which do not say who keeps them. */
export interface NamedItems {
  readonly itemIds: readonly string[];
  readonly owner: string;
  /** Of the outputs of their turns together: what is beyond may be left out, but not all of it, so that whoever asked can tell. */
  readonly maxBytes: number;
}

/** The turns that said the items, by the items' ids. */
export type TurnsByItem = ReadonlyMap<string, PastTurn>;

export interface Memory {
  /** `resp_mizu_` and 32 hexadecimal characters. */
  responseId(previousId: string | undefined): string;
  /** Undefined for an id that is unknown, over, or not this owner's. */
  find(id: string, owner: string): PastTurn | undefined | Promise<PastTurn | undefined>;
  /** What one request names by item id. Leaves out what `find` would not find. */
  turnsOf(named: NamedItems): TurnsByItem | Promise<TurnsByItem>;
  /** Undefined when it is done at once. Never rejects: a turn that could not be kept is unknown afterwards. */
  save(turn: NewTurn): Promise<void> | undefined;
  close(): void;
}

export const RESPONSE_ID_PREFIX = 'resp_mizu_';

export function localMemory(history: ResponseHistory, mint: Mint): Memory {
  return {
    responseId: () => mint(RESPONSE_ID_PREFIX),
    find: (id, owner) => history.find(id, owner),
    turnsOf: ({ itemIds, owner }) => history.turnsOf(itemIds, owner),
    save({ id, owner, turn }) {
      history.save(id, owner, turn);
      return undefined;
    },
    close: () => history.close(),
  };
}
