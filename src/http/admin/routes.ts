/**
 * The admin API: one row a route. Its `request` are the members of the path, of the query (GET, DELETE) or of the JSON body
 * (POST, PATCH); `role` is what a token needs. Handlers are handed in (`AdminActions`): a row without one does not compile.
 */
import type { Static, TObject, TSchema } from 'typebox';
import type { AdminRole } from '../../store/admin-tokens.ts';
import type { Cause } from '../../store/accounts.ts';
import * as ask from './requests.ts';
import * as answer from './responses.ts';

export const ADMIN_PREFIX = '/admin/v1/';

export interface AdminRoute<Request extends TObject = TObject> {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** Behind {@link ADMIN_PREFIX}; `{id}` is a member of the request. */
  readonly path: string;
  readonly role: AdminRole;
  readonly summary: string;
  readonly request: Request;
  readonly response: TSchema;
  readonly status?: 201;
  /** It changes videos: a replica refuses it. */
  readonly primaryOnly?: true;
  /** It answers with server-sent events. */
  readonly isStream?: true;
}

function row<Request extends TObject>(
  method: AdminRoute['method'],
  path: string,
  summary: string,
  request: Request,
  response: TSchema,
  more: Pick<AdminRoute, 'status' | 'primaryOnly' | 'isStream'> = {},
): AdminRoute<Request> {
  return { method, path, role: method === 'GET' ? 'read' : 'write', summary, request, response, ...more };
}

const MADE = { status: 201 } as const;

export const ADMIN_ROUTES = {
  overview: row(
    'GET',
    'overview',
    'Requests, errors, tokens, first tokens and spend of a time',
    ask.OverviewQuery,
    answer.Overview,
  ),

  listAccounts: row('GET', 'accounts', 'Accounts, oldest first', ask.AccountQuery, answer.Accounts),
  createAccount: row('POST', 'accounts', 'Make an account', ask.CreateAccount, answer.Account, MADE),
  showAccount: row('GET', 'accounts/{account}', 'One account', ask.OneAccount, answer.Account),
  changeAccount: row(
    'PATCH',
    'accounts/{account}',
    'Change, limit, disable or enable an account',
    ask.ChangeAccount,
    answer.Account,
  ),
  creditAccount: row('POST', 'accounts/{account}/credit', 'Add to its wallet, or correct it', ask.CreditAccount, answer.Account),
  balances: row('GET', 'balances', 'Wallets and sub-accounts', ask.AnyAccount, answer.Balances),
  spend: row('GET', 'spend', 'What keys used and were charged, by UTC day', ask.SpendQuery, answer.Spend),

  listKeys: row('GET', 'keys', 'Keys, oldest first', ask.KeyQuery, answer.Keys),
  createKey: row('POST', 'keys', 'Make a key; it is shown this once', ask.CreateKey, answer.NewKey, MADE),
  showKey: row('GET', 'keys/{id}', 'One key', ask.OneKey, answer.Key),
  changeKey: row('PATCH', 'keys/{id}', 'Change, limit, disable or enable a key', ask.ChangeKey, answer.Key),
  rotateKey: row(
    'POST',
    'keys/{id}/rotate',
    'A new key in its place, with the same restrictions; it is shown this once',
    ask.RotateKey,
    answer.RotatedKey,
    MADE,
  ),
  deleteKey: row('DELETE', 'keys/{id}', 'Refuse it for good; rows that name it stay', ask.OneKey, answer.Key),
  transfer: row('POST', 'keys/{id}/transfer', 'Between its wallet and its sub-account', ask.TransferToKey, answer.SubAccount),

  listChannels: row('GET', 'channels', 'Channels with their circuits', ask.Nothing, answer.Channels),
  testChannels: row('POST', 'channels/test', 'Ask every Channel', ask.TestEveryChannel, answer.Probes),
  testChannel: row('POST', 'channels/{id}/test', 'Ask one Channel', ask.TestChannel, answer.Probe),
  takeOut: row('POST', 'channels/{id}/out-of-service', 'Send it no new work, on every machine', ask.OneChannel, answer.Channel),
  putBack: row('POST', 'channels/{id}/in-service', 'Put it back', ask.OneChannel, answer.Channel),
  models: row('GET', 'models', 'Models with their prices and Channels, as they are', ask.Nothing, answer.Models),

  listExchanges: row('GET', 'exchanges', 'The request log, newest first', ask.ExchangeQuery, answer.Exchanges),
  followExchanges: row(
    'GET',
    'exchanges/live',
    'The request log as it grows, as server-sent events',
    ask.LiveQuery,
    answer.Exchange,
    {
      isStream: true,
    },
  ),
  showExchange: row(
    'GET',
    'exchanges/{id}',
    'One exchange with its attempts and its charge',
    ask.OneExchange,
    answer.ExchangeDetail,
  ),

  ledgerHead: row('GET', 'ledger/head', 'The newest row of the journal, to be kept elsewhere', ask.Nothing, answer.LedgerHead),
  ledgerHolds: row('GET', 'ledger/holds', 'Money set aside for videos', ask.AnyAccount, answer.Holds),
  ledgerJournal: row('GET', 'ledger/journal', 'The journal, oldest first', ask.JournalPage, answer.Journal),
  verifyLedger: row('GET', 'ledger/verify', 'Recompute everything from the journal', ask.VerifyLedger, answer.Verification),

  listVideos: row('GET', 'videos', 'Video tasks, newest first', ask.VideoQuery, answer.Videos),
  showVideo: row('GET', 'videos/{id}', 'One task', ask.OneVideo, answer.Video),
  resolveVideo: row(
    'POST',
    'videos/{id}/resolve',
    'Decide about a task whose outcome is unknown',
    ask.ResolveVideo,
    answer.Video,
    {
      primaryOnly: true,
    },
  ),

  checkConfig: row('GET', 'config/check', 'Read the configuration file as a start would', ask.Nothing, answer.ConfigCheck),
  reloadConfig: row('POST', 'config/reload', 'Read it again, and use it where it is valid', ask.Nothing, answer.ConfigCheck),

  backUpStore: row(
    'POST',
    'store/backup',
    'Copy the store while it is in use, and verify the copy',
    ask.BackUpStore,
    answer.Backup,
    MADE,
  ),
  rotateSecret: row(
    'POST',
    'secrets/rotate',
    'Seal new envelopes with a new secret; older ones open',
    ask.Nothing,
    answer.Secret,
  ),

  listTokens: row('GET', 'tokens', 'Admin tokens', ask.Nothing, answer.AdminTokens),
  createToken: row('POST', 'tokens', 'Make an admin token; it is shown this once', ask.CreateToken, answer.NewAdminToken, MADE),
  deleteToken: row('DELETE', 'tokens/{name}', 'Refuse it from now on', ask.OneToken, answer.Deleted),
} as const satisfies Record<string, AdminRoute>;

export type AdminRouteName = keyof typeof ADMIN_ROUTES;

/** Who asks, and why. */
export interface AdminCall {
  readonly cause: Cause;
  /** Aborted when the one who asks has left. */
  readonly gone: AbortSignal;
}

type RequestOf<Name extends AdminRouteName> = Static<(typeof ADMIN_ROUTES)[Name]['request']>;

/** What each route does. Throws RefusedError. A stream is given as batches of rows, each with the cursor behind it. */
export type AdminActions = {
  readonly [Name in AdminRouteName]: (
    call: AdminCall,
    request: RequestOf<Name>,
  ) => Name extends 'followExchanges' ? AsyncIterable<LiveBatch> : Promise<unknown>;
};

/** Rows that came since the last batch. */
export interface LiveBatch {
  readonly rows: readonly object[];
  /** From here one may go on. */
  readonly cursor: number;
  /** Rows that were passed over, because more came than can be shown. */
  readonly skipped: number;
}
