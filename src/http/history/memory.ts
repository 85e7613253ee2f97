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

export interface Memory {
  /** `resp_mizu_` and 32 hexadecimal characters. */
  responseId(previousId: string | undefined): string;
  /** Undefined for an id that is unknown, over, or not this owner's. */
  find(id: string, owner: string): PastTurn | undefined | Promise<PastTurn | undefined>;
  /** The turn that said an item, by the item's id, which does not say who keeps it: this process is asked alone. Undefined as in `find`. */
  turnOf(itemId: string, owner: string): PastTurn | undefined;
  /** Undefined when it is done at once. Never rejects: a turn that could not be kept is unknown afterwards. */
  save(turn: NewTurn): Promise<void> | undefined;
  close(): void;
}

export const RESPONSE_ID_PREFIX = 'resp_mizu_';

export function localMemory(history: ResponseHistory, mint: Mint): Memory {
  return {
    responseId: () => mint(RESPONSE_ID_PREFIX),
    find: (id, owner) => history.find(id, owner),
    turnOf: (itemId, owner) => history.turnOf(itemId, owner),
    save({ id, owner, turn }) {
      history.save(id, owner, turn);
      return undefined;
    },
    close: () => history.close(),
  };
}
