/**
 * The configuration while the gateway runs: a file that is read again on SIGHUP and on change. A file that is not valid keeps the
 * old configuration and is reported. Callers get a frozen snapshot.
 */
import {
  closeSync,
  type FSWatcher,
  fstatSync,
  openSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  type Stats,
  statSync,
  watch,
  writeFileSync,
} from 'node:fs';
import { basename, dirname } from 'node:path';
import type { Config } from './config.ts';
import { ConfigError } from './config-error.ts';
import { type ParseOptions, parseConfig } from './parse.ts';

export interface ConfigSource {
  current(): Config;
  /** Called after every accepted change. Returns how to stop listening. */
  onChange(listener: (config: Config) => void): () => void;
}

export type LoadOptions = Omit<ParseOptions, 'path' | 'revision' | 'nowMs'> & { readonly now: () => number };

/** Reads the file once. Throws {@link ConfigError}, also when the file cannot be read. */
export function loadConfig(path: string, options: LoadOptions, revision = 1): Config {
  return configOf(readConfigFile(path), path, options, revision);
}

function configOf(text: string, path: string, { now, ...rest }: LoadOptions, revision: number): Config {
  return parseConfig(text, { ...rest, path, revision, nowMs: now() });
}

function readConfigFile(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown';
    const message =
      code === 'ENOENT'
        ? `there is no configuration file ${path}; --config or MIZU_CONFIG names another`
        : `the configuration file ${path} cannot be read (${code})`;
    throw new ConfigError([{ path: '', message }], code === 'ENOENT');
  }
}

/**
 * For a gateway that runs: a pipe that nobody writes would stop it, and a device fill its memory. Throws {@link ConfigError}.
 */
function checkIsFile(path: string): void {
  let found: Stats;
  try {
    found = statSync(path);
  } catch {
    // Reading it says why.
    return;
  }
  if (!found.isFile() && !found.isDirectory())
    throw new ConfigError([{ path: '', message: `the configuration file ${path} is no file, but a pipe or a device` }]);
}

/** A change that takes longer was killed in its middle, and holds nobody up. */
const LONGEST_CHANGE_MS = 60_000;

/**
 * Replaces the file by what `edit` makes of it, at once: whoever reads it finds the old one or the new one, and whoever changes
 * it meanwhile is refused. Gives the path. Throws {@link ConfigError} where that would be no valid configuration, or where
 * another process changes it, and the system's error where it cannot be written; the old file then stays.
 */
export function changeConfig(path: string, options: LoadOptions, edit: (text: string) => string): string {
  readConfigFile(path);
  const file = behindLinks(path);
  const beside = `${file}.new`;
  const opened = openBeside(beside, file, options.now());
  try {
    // Read behind the lock, which the new file is: a change that ended meanwhile is not lost.
    const text = readConfigFile(path);
    const changed = edit(text);
    if (changed === text) return path;
    configOf(changed, path, options, 1);
    writeFileSync(opened, changed, { flush: true });
    // What took its place may not be written yet.
    if (!isNamed(opened, beside)) throw isBeingChanged(file, beside);
    renameSync(beside, file);
    return path;
  } finally {
    const isOurs = isNamed(opened, beside);
    closeSync(opened);
    if (isOurs) rmSync(beside, { force: true });
  }
}

/** Under its name may be the next one's by now: a process that was stopped for long is taken for one that was killed. */
function isNamed(opened: number, path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.ino === fstatSync(opened).ino;
}

function isBeingChanged(file: string, beside: string): ConfigError {
  return new ConfigError([
    { path: '', message: `${file} is being changed by another process: try again (${beside} is its mark)` },
  ]);
}

function openBeside(beside: string, file: string, nowMs: number): number {
  const begun = statSync(beside, { throwIfNoEntry: false });
  if (begun !== undefined && Math.abs(nowMs - begun.mtimeMs) > LONGEST_CHANGE_MS) rmSync(beside, { force: true });
  try {
    return openSync(beside, 'wx', statSync(file).mode);
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error;
    throw isBeingChanged(file, beside);
  }
}

/** A configuration that never changes: the demonstration, and tests. */
export function fixedConfig(config: Config): ConfigSource {
  return { current: () => config, onChange: () => () => undefined };
}

export interface FileConfigEvents {
  readonly onAccepted: (config: Config) => void;
  /** The old configuration stays. */
  readonly onRefused: (error: ConfigError) => void;
  /** Changes of the file are not noticed, or not any more; {@link FileConfig.reload} still reads it. */
  readonly onUnwatched: (error: unknown) => void;
}

/** Editors write a file in several steps: it is read after this long without a change. */
const SETTLE_MS = 200;

export class FileConfig implements ConfigSource {
  readonly #path: string;
  readonly #options: LoadOptions;
  readonly #events: FileConfigEvents;
  readonly #listeners = new Set<(config: Config) => void>();
  #config: Config;
  #stopWatching: () => void = () => undefined;

  /** Throws {@link ConfigError} when the first reading fails. */
  constructor(path: string, options: LoadOptions, events: FileConfigEvents) {
    this.#path = path;
    this.#options = options;
    this.#events = events;
    this.#config = loadConfig(path, options);
  }

  current(): Config {
    return this.#config;
  }

  onChange(listener: (config: Config) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** What the file holds now, which nothing uses yet. Throws {@link ConfigError}. */
  read(): Config {
    checkIsFile(this.#path);
    return loadConfig(this.#path, this.#options, this.#config.revision);
  }

  /** Reads the file again. Never throws. */
  reload(): void {
    let config: Config;
    try {
      checkIsFile(this.#path);
      config = loadConfig(this.#path, this.#options, this.#config.revision + 1);
    } catch (error) {
      this.#events.onRefused(error instanceof ConfigError ? error : new ConfigError([{ path: '', message: String(error) }]));
      return;
    }
    this.#config = config;
    this.#events.onAccepted(config);
    for (const listener of this.#listeners) listener(config);
  }

  /**
   * Watches the file's folder, since editors and mounts replace the file itself, and for a symbolic link also the folder of its
   * target. Never throws.
   */
  startWatching(): void {
    let timer: NodeJS.Timeout | undefined;
    const settled = (): void => {
      // The link may have a new target. The file is read last, so that no change in between is missed.
      this.close();
      this.startWatching();
      this.reload();
    };
    const watchers: FSWatcher[] = [];
    const stop = (): void => {
      clearTimeout(timer);
      for (const watcher of watchers) watcher.close();
    };
    this.#stopWatching = stop;
    try {
      for (const place of new Set([this.#path, behindLinks(this.#path)])) {
        const watcher = watch(dirname(place), { persistent: false }, (_event, name) => {
          // Kubernetes swaps a `..data` link and never touches the file's own name.
          if (name !== null && name !== basename(place) && !name.startsWith('..')) return;
          clearTimeout(timer);
          timer = setTimeout(settled, SETTLE_MS).unref();
        });
        watchers.push(watcher);
        watcher.on('error', (error) => {
          watcher.close();
          this.#events.onUnwatched(error);
        });
      }
    } catch (error) {
      // The system has no watches left: the gateway serves all the same.
      this.#events.onUnwatched(error);
    }
  }

  close(): void {
    this.#stopWatching();
  }
}

/** The path itself where there is no file now. */
function behindLinks(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    // The file is missing: its own folder is watched, and reports its return.
    return path;
  }
}
