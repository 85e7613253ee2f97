/**
 * What each route of the admin API does: the function of the verb, or one beside it. A route without an entry does not compile.
 */
import type { ChannelType } from '../codecs/canonical/dialect.ts';
import type { AdminActions, AdminCall } from '../http/admin/routes.ts';
import { RefusedError } from '../http/admin/refusals.ts';
import type { Config } from '../http/config/config.ts';
import type { OperatorReports } from '../http/operations/reports.ts';
import type { Store } from '../store/store.ts';
import type { Clock } from '../streams/clock.ts';
import { changeAccount, createAccount, creditAccount, pageOfAccounts, showAccount } from './accounts.ts';
import { createToken, deleteToken, listTokens } from './admin-tokens.ts';
import { testChannels } from './channels.ts';
import { listChannels, putInService, takeOutOfService } from './channel-service.ts';
import { checkConfig } from './check.ts';
import { followExchanges, listExchanges, showExchange } from './exchanges.ts';
import { changeKey, createKey, deleteKey, pageOfKeys, rotateKey, showKey, transferToKey } from './keys.ts';
import { balances, journalRows, ledgerHead, openHolds, verifyLedger } from './ledger.ts';
import { listModels } from './models-view.ts';
import { overview } from './overview.ts';
import { rotateSecret } from './secrets.ts';
import { spendByDay } from './spend.ts';
import { backUpBelow, type StorePlaces } from './store.ts';
import type { VerbContext } from './verb.ts';
import { listVideos, resolveVideo, showVideo, videoJson } from './videos.ts';
import type { JournalKind } from '../store/ledger.ts';

/** What the actions get of the gateway that runs. */
export interface AdminParts {
  readonly reports: OperatorReports;
  /** The configuration that is in force. */
  readonly config: () => Config;
  /** Reads the file anew. Throws ConfigError. */
  readonly readConfig: () => Config;
  /** Uses the file where it is valid, in every process of the gateway. */
  readonly reload: () => void;
  readonly store: () => Promise<Store>;
  readonly places: StorePlaces;
  readonly textTypes: ReadonlySet<ChannelType>;
  readonly clock: Clock;
  readonly mint: (prefix: string) => string;
}

/** What one answer may list of what has no pages. */
const MOST_ROWS = 100_000;

/** A recount holds sums of all that the store has: one at a time. */
class Recounts {
  #isRunning = false;

  async alone<Result>(run: () => Promise<Result>): Promise<Result> {
    if (this.#isRunning) throw new RefusedError('the ledger is being recounted: ask again later', 'conflict', 'recount_running');
    this.#isRunning = true;
    try {
      return await run();
    } finally {
      this.#isRunning = false;
    }
  }
}

const listed = async <Row>(rows: Promise<readonly Row[]>): Promise<{ readonly data: readonly Row[] }> => ({ data: await rows });

export function createAdminActions(parts: AdminParts): AdminActions {
  const recounts = new Recounts();
  const { reports, store } = parts;
  const contextOf = ({ cause, gone }: AdminCall, config = parts.config): VerbContext => ({
    clock: parts.clock,
    mint: parts.mint,
    cause,
    config,
    store,
    // Whoever sends the request has decided.
    confirm: () => Promise.resolve(),
    interrupted: () => gone,
    readFile: (path) => {
      throw new RefusedError(`${path} is not read here`);
    },
    changeConfig: () => {
      throw new RefusedError('the configuration file is not changed here');
    },
    input: ReadableStream.from([]),
    write: () => Promise.resolve(),
  });
  const check = (call: AdminCall) => checkConfig(contextOf(call, parts.readConfig), parts.textTypes);
  return {
    overview: (call, query) => overview(contextOf(call), query),

    listAccounts: (call, query) => pageOfAccounts(contextOf(call), query),
    createAccount: (call, request) => made(contextOf(call), 'account_created', (context) => createAccount(context, request)),
    showAccount: (call, request) => showAccount(contextOf(call), request),
    changeAccount: (call, request) => changeAccount(contextOf(call), request),
    creditAccount: (call, request) => creditAccount(contextOf(call), request),
    balances: (call, request) => listed(balances(contextOf(call), request, MOST_ROWS)),
    spend: (call, request) => listed(spendByDay(contextOf(call), request, MOST_ROWS)),

    listKeys: (call, query) => pageOfKeys(contextOf(call), query),
    createKey: (call, request) => made(contextOf(call), 'key_created', (context) => createKey(context, request)),
    showKey: (call, request) => showKey(contextOf(call), request),
    changeKey: (call, request) => changeKey(contextOf(call), request),
    rotateKey: (call, request) => rotateKey(contextOf(call), request),
    deleteKey: (call, request) => deleteKey(contextOf(call), request),
    backUpStore: (call, request) => recounts.alone(() => backUpBelow(contextOf(call), request, parts.places)),
    rotateSecret: (call) => rotateSecret(contextOf(call)),
    transfer: (call, request) => transferToKey(contextOf(call), request),

    listChannels: async (call) => ({ data: await listChannels(contextOf(call), await reports.live()) }),
    testChannels: (call, request) => listed(testChannels(contextOf(call), request)),
    testChannel: async (call, request) => {
      const [probe] = await testChannels(contextOf(call), request);
      return probe;
    },
    takeOut: (call, request) => takeOutOfService(contextOf(call), request),
    putBack: (call, request) => putInService(contextOf(call), request),
    models: (call) => listed(listModels(contextOf(call))),

    listExchanges: (call, query) => listExchanges(contextOf(call), query),
    followExchanges: (call, query) => followExchanges(contextOf(call), query, call.gone),
    showExchange: (call, request) => showExchange(contextOf(call), request),

    ledgerHead: (call) => ledgerHead(contextOf(call)),
    ledgerHolds: (call, request) => listed(openHolds(contextOf(call), request)),
    async ledgerJournal(call, { limit = 100, ...query }) {
      const data = await journalRows(contextOf(call), { ...query, limit });
      const last = data.at(-1);
      return { data, ...(data.length < limit || last === undefined ? {} : { nextCursor: String(last.seq) }) };
    },
    verifyLedger: (call, request) => recounts.alone(() => verifyLedger(contextOf(call), request)),

    async listVideos(call, query) {
      return { data: (await listVideos(contextOf(call), query)).map(videoJson) };
    },
    showVideo: async (call, request) => videoJson(await showVideo(contextOf(call), request)),
    resolveVideo: async (call, request) => videoJson(await resolveVideo(contextOf(call), request)),

    checkConfig: check,
    async reloadConfig(call) {
      const checked = await check(call);
      if (!checked.valid)
        throw new RefusedError('the configuration is not valid: the old one stays', 'conflict', 'invalid_config');
      parts.reload();
      return checked;
    },

    listTokens: (call) => listed(listTokens(contextOf(call))),
    createToken: (call, request) => createToken(contextOf(call), request),
    deleteToken: (call, request) => deleteToken(contextOf(call), request),
  };
}

/**
 * What was made before under the same cause is given again; a key without its secret, which nobody knows any more. The caller has
 * made sure that the cause was used for this very request.
 */
async function made(
  context: VerbContext,
  kind: Extract<JournalKind, 'account_created' | 'key_created'>,
  make: (context: VerbContext) => Promise<object>,
): Promise<object> {
  try {
    return await make(context);
  } catch (thrown) {
    if (!(thrown instanceof RefusedError) || thrown.code !== 'cause_reused') throw thrown;
    const rows = await (await context.store()).ledger.journal({ ref: context.cause.id });
    const row = rows.find((one) => one.kind === kind);
    if (row?.keyId !== undefined) return await showKey(context, { id: row.keyId });
    if (row?.accountId !== undefined) return await showAccount(context, { account: row.accountId });
    throw thrown;
  }
}
