/** `mizu admin-tokens …`: who may use the admin API. A new token is printed once and never again. */
import type { Static } from 'typebox';
import { refusedBy, RefusedError } from '../http/admin/refusals.ts';
import { CreateToken, Nothing, OneToken } from '../http/admin/requests.ts';
import type { AdminToken } from '../store/admin-tokens.ts';
import { table, type Verb, type VerbContext, verb } from './verb.ts';

export async function createToken(
  context: VerbContext,
  asked: Static<typeof CreateToken>,
): Promise<AdminToken & { readonly token: string }> {
  const made = await (await context.store()).adminTokens.create(asked, context.cause);
  if (!made.ok) {
    const { refusal } = made;
    throw refusal.reason === 'taken'
      ? new RefusedError(`there is an admin token ${asked.name} already`, 'conflict', 'taken')
      : refusedBy(refusal);
  }
  return { ...made.value.token, token: made.value.secret };
}

export async function listTokens(context: VerbContext): Promise<AdminToken[]> {
  return await (await context.store()).adminTokens.list();
}

export async function deleteToken(
  context: VerbContext,
  { name }: Static<typeof OneToken>,
): Promise<{ readonly name: string; readonly deleted: true }> {
  const deleted = await (await context.store()).adminTokens.delete(name, context.cause);
  if (deleted.ok) return { name, deleted: true };
  const { refusal } = deleted;
  throw refusal.reason === 'not_found'
    ? new RefusedError(`there is no admin token ${name}`, 'unknown', 'not_found')
    : refusedBy(refusal);
}

export const ADMIN_TOKENS: readonly Verb[] = [
  verb({
    name: 'admin-tokens create',
    usage: 'create NAME --role read|write',
    does: 'Makes a token for the admin API and the console and prints it once.',
    options: CreateToken,
    arguments: ['name'],
    changes: true,
    run: createToken,
    text: ({ token }) => token,
  }),
  verb({
    name: 'admin-tokens list',
    usage: 'list',
    does: 'All tokens with their roles.',
    options: Nothing,
    run: listTokens,
    text: (tokens) =>
      table([
        ['NAME', 'ROLE', 'TOKEN', 'CREATED'],
        ...tokens.map(({ name, role, prefix, last4, createdAtMs }) => [
          name,
          role,
          `${prefix}…${last4}`,
          new Date(createdAtMs).toISOString(),
        ]),
      ]),
  }),
  verb({
    name: 'admin-tokens delete',
    usage: 'delete NAME',
    does: 'Refuses the token from now on.',
    options: OneToken,
    arguments: ['name'],
    changes: true,
    run: deleteToken,
    text: ({ name }) => `admin token ${name} is deleted`,
  }),
];
