import { illegal, LifecycleError, type Transitions } from '../../streams/lifecycle.ts';

const no = illegal;

/** `whole`: message_start already held the stop reason (a turn that only continues a programmatic tool call). */
export type UpstreamState = 'idle' | 'whole' | 'between' | 'inBlock' | 'stopped' | 'ended';
/**
 * `startWhole`: a message_start with a stop reason. `usage`: a message_delta without stop reason. `stop`: one with it.
 * `cut`: one whose stop reason may leave the last block open (max_tokens).
 */
export type UpstreamVerb = 'start' | 'startWhole' | 'open' | 'delta' | 'close' | 'usage' | 'stop' | 'cut' | 'end' | 'error';

// biome-ignore format: a table is read by its columns
export const UPSTREAM = {
  //         start             startWhole           open             delta             close             usage             stop             cut             end           error
  idle:    { start: 'between', startWhole: 'whole', open: no,        delta: no,        close: no,        usage: no,        stop: no,        cut: no,        end: no,      error: 'ended' },
  whole:   { start: no,        startWhole: no,      open: 'inBlock', delta: no,        close: no,        usage: 'whole',   stop: 'stopped', cut: 'stopped', end: 'ended', error: 'ended' },
  between: { start: no,        startWhole: no,      open: 'inBlock', delta: no,        close: no,        usage: 'between', stop: 'stopped', cut: 'stopped', end: no,      error: 'ended' },
  inBlock: { start: no,        startWhole: no,      open: no,        delta: 'inBlock', close: 'between', usage: no,        stop: no,        cut: 'stopped', end: no,      error: 'ended' },
  stopped: { start: no,        startWhole: no,      open: no,        delta: no,        close: no,        usage: 'stopped', stop: 'stopped', cut: 'stopped', end: 'ended', error: 'ended' },
  ended:   { start: no,        startWhole: no,      open: no,        delta: no,        close: no,        usage: no,        stop: no,        cut: no,        end: no,      error: no },
} as const satisfies Transitions<UpstreamState, UpstreamVerb>;

/**
 * Block kinds by the deltas they take. `media` and `fixed`: complete at their start. `native`: a kind that only this dialect
 * knows.
 */
export type BlockKind = 'text' | 'thinking' | 'redacted' | 'tool' | 'media' | 'serverTool' | 'compaction' | 'fixed' | 'native';
export type DeltaKind =
  | 'text_delta'
  | 'citations_delta'
  | 'thinking_delta'
  | 'signature_delta'
  | 'input_json_delta'
  | 'compaction_delta'
  | 'unknown';

// biome-ignore format: a table is read by its columns
const FITS = {
  //            text_delta         citations_delta         thinking_delta         signature_delta         input_json_delta         compaction_delta         unknown
  text:       { text_delta: true,  citations_delta: true,  thinking_delta: false, signature_delta: false, input_json_delta: false, compaction_delta: false, unknown: true },
  thinking:   { text_delta: false, citations_delta: false, thinking_delta: true,  signature_delta: true,  input_json_delta: false, compaction_delta: false, unknown: true },
  redacted:   { text_delta: false, citations_delta: false, thinking_delta: false, signature_delta: false, input_json_delta: false, compaction_delta: false, unknown: true },
  tool:       { text_delta: false, citations_delta: false, thinking_delta: false, signature_delta: false, input_json_delta: true,  compaction_delta: false, unknown: true },
  media:      { text_delta: false, citations_delta: false, thinking_delta: false, signature_delta: false, input_json_delta: false, compaction_delta: false, unknown: true },
  serverTool: { text_delta: false, citations_delta: false, thinking_delta: false, signature_delta: false, input_json_delta: true,  compaction_delta: false, unknown: true },
  compaction: { text_delta: false, citations_delta: false, thinking_delta: false, signature_delta: true,  input_json_delta: false, compaction_delta: true,  unknown: true },
  fixed:      { text_delta: false, citations_delta: false, thinking_delta: false, signature_delta: false, input_json_delta: false, compaction_delta: false, unknown: true },
  native:     { text_delta: true,  citations_delta: true,  thinking_delta: true,  signature_delta: true,  input_json_delta: true,  compaction_delta: true,  unknown: true },
} as const satisfies Record<BlockKind, Record<DeltaKind, boolean>>;

const KINDS: ReadonlyMap<string, BlockKind> = new Map([
  ['text', 'text'],
  ['thinking', 'thinking'],
  ['redacted_thinking', 'redacted'],
  ['tool_use', 'tool'],
  ['image', 'media'],
  ['document', 'media'],
  ['server_tool_use', 'serverTool'],
  ['mcp_tool_use', 'serverTool'],
  ['compaction', 'compaction'],
  ['container_upload', 'fixed'],
  ['fallback', 'fixed'],
  ['mcp_tool_listing', 'fixed'],
]);

export function blockKind(type: string): BlockKind {
  return KINDS.get(type) ?? (type.endsWith('_tool_result') ? 'fixed' : 'native');
}

export function deltaKind(type: string): DeltaKind {
  switch (type) {
    case 'text_delta':
    case 'citations_delta':
    case 'thinking_delta':
    case 'signature_delta':
    case 'input_json_delta':
    case 'compaction_delta':
      return type;
    default:
      return 'unknown';
  }
}

/** Throws LifecycleError when the block does not take the delta. */
export function checkFits(block: BlockKind, delta: DeltaKind): void {
  if (FITS[block][delta]) return;
  const legal = Object.entries(FITS[block]).filter(([, fits]) => fits);
  throw new LifecycleError(
    'content block',
    `open ${block}`,
    delta,
    legal.map(([name]) => name),
  );
}

export type ClientState = 'idle' | 'between' | 'inBlock' | 'signed' | 'stopped' | 'ended';
export type ClientVerb = 'start' | 'open' | 'delta' | 'sign' | 'close' | 'stop' | 'end' | 'error' | 'other';

/**
 * What our clients get. `sign` is the one signature_delta of a thinking block, `other` a ping or an unknown event of the same
 * dialect.
 */
// biome-ignore format: a table is read by its columns
export const CLIENT = {
  //         start             open             delta             sign             close             stop             end           error           other
  idle:    { start: 'between', open: no,        delta: no,        sign: no,        close: no,        stop: no,        end: no,      error: 'ended', other: 'idle' },
  between: { start: no,        open: 'inBlock', delta: no,        sign: no,        close: no,        stop: 'stopped', end: 'ended', error: 'ended', other: 'between' },
  inBlock: { start: no,        open: no,        delta: 'inBlock', sign: 'signed',  close: 'between', stop: no,        end: no,      error: 'ended', other: 'inBlock' },
  signed:  { start: no,        open: no,        delta: no,        sign: no,        close: 'between', stop: no,        end: no,      error: 'ended', other: 'signed' },
  stopped: { start: no,        open: no,        delta: no,        sign: no,        close: no,        stop: 'stopped', end: 'ended', error: no,      other: 'stopped' },
  ended:   { start: no,        open: no,        delta: no,        sign: no,        close: no,        stop: no,        end: no,      error: no,      other: no },
} as const satisfies Transitions<ClientState, ClientVerb>;
