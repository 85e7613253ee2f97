import { join } from 'node:path';
import type { StoreOptions } from '../store.ts';

/** Beside the data, so that whoever moves the one moves the other. */
export const logPath = ({ path }: Pick<StoreOptions, 'path'>): string => join(path, 'settlements');
