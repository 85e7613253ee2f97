/** Every case of the linearity law over what is asked of a gateway, by name. */
import type { Case } from './growth.ts';
import { SOCKET_CASES } from './http-rows.ts';
import { PATH_CASES } from './path-rows.ts';
import { STORE_CASES } from './store-rows.ts';

export const HTTP_CASES: readonly Case[] = [...SOCKET_CASES, ...PATH_CASES, ...STORE_CASES];
