/**
 * The plots of the report as SVG text: goals, ratios, series. Colors come from the classes that `report.ts` styles, for light and
 * dark.
 */
import { held, judged, type Row } from './harness/statistics.ts';

const WIDTH = 760;
const LINE = 20;
/** Room for a figure behind the longest mark, and for one with its goal. */
const FIGURE = 64;
const FIGURE_AND_GOAL = 120;

export function figure(value: number | undefined): string {
  if (value === undefined) return '';
  if (!Number.isFinite(value)) return '–';
  return value.toFixed(Math.abs(value) < 10 ? 2 : 0);
}

export function htmlText(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
}

function svg(height: number, label: string, content: readonly string[]): string {
  return `<svg viewBox="0 0 ${WIDTH} ${height}" role="img" aria-label="${htmlText(label)}">${content.join('')}</svg>`;
}

const text = (x: number, y: number, said: string, more = ''): string =>
  `<text x="${round(x)}" y="${round(y)}"${more}>${htmlText(said)}</text>`;

const round = (value: number): number => Math.round(value * 10) / 10;

/** The widest that a goal is missed or kept by: further ones stand at the edge. */
const FURTHEST = 8;
const TICKS = [1 / 8, 1 / 4, 1 / 2, 1, 2, 4, 8];

/** How far each figure is from its goal, logarithmic; left of the line it is met, from whichever side the goal bounds. */
export function goalsPlot(rows: readonly Row[]): string {
  const top = LINE;
  const x = (times: number): number =>
    WIDTH / 2 +
    (Math.log2(Math.min(FURTHEST, Math.max(1 / FURTHEST, times))) / Math.log2(FURTHEST)) * (WIDTH / 2 - FIGURE_AND_GOAL);
  const marks = rows.map((row, index) => {
    const [value, goal] = [judged(row) ?? Number.NaN, row.goal ?? Number.NaN];
    // What is zero or less is as far on the good side as there is.
    const at = x(Math.max(row.atLeast ? goal / value : value / goal, 1 / FURTHEST));
    const y = top + (2 * index + 2) * LINE - 4;
    const met = held(row) === true;
    const mark = met
      ? `<circle class="met" cx="${round(at)}" cy="${y}" r="5"/>`
      : `<path class="missed" d="M${round(at)} ${y - 6}l6 11h-12z"/>`;
    const said = `${figure(value)} (${row.atLeast ? '≥' : '≤'} ${figure(goal)})`;
    return `${text(0, y - LINE + 4, row.name)}<line class="${met ? 'met' : 'missed'}" x1="${WIDTH / 2}" x2="${round(at)}" y1="${y}" y2="${y}"/>${mark}${text(at + (at < WIDTH / 2 ? -10 : 10), y + 4, said, at < WIDTH / 2 ? ' text-anchor="end"' : '')}`;
  });
  const height = top + rows.length * 2 * LINE + LINE;
  const ticks = TICKS.map((times) => {
    const said = times < 1 ? `1/${1 / times}` : String(times);
    const middle = times === 1;
    return `<line class="${middle ? 'axis' : 'grid'}" x1="${round(x(times))}" x2="${round(x(times))}" y1="${top}" y2="${height - LINE}"/>${text(x(times), height - 5, middle ? 'goal' : `${said}×`, ' text-anchor="middle" class="faint"')}`;
  });
  return svg(height, 'Measured against goals', [...ticks, ...marks]);
}

/** A bar for each ratio, with its spread; the line at 1 is the floor, the short one the goal. */
export function ratiosPlot(rows: readonly Row[], label: string): string {
  const ratioOf = ({ ratio = 0 }: Row): number => ratio;
  const spreadOf = ({ spread = 0 }: Row): number => (Number.isFinite(spread) ? spread : 0);
  const ends = rows.map((row) => ratioOf(row) + spreadOf(row));
  const longest = Math.max(1.2, ...ends, ...rows.map((row) => goalOf(row) ?? 0));
  const x = (value: number): number => (value / longest) * (WIDTH - FIGURE);
  const marks = rows.map((row, index) => {
    const y = (2 * index + 1) * LINE;
    const ratio = ratioOf(row);
    const spread = spreadOf(row);
    const kind = goalOf(row) === undefined ? 'bar' : held(row) ? 'met' : 'missed';
    const whisker = `<line class="whisker" x1="${round(x(Math.max(0, ratio - spread)))}" x2="${round(x(ratio + spread))}" y1="${y + 9}" y2="${y + 9}"/>`;
    const goal = goalOf(row);
    const bound =
      goal === undefined ? '' : `<line class="goal" x1="${round(x(goal))}" x2="${round(x(goal))}" y1="${y}" y2="${y + 18}"/>`;
    return `${text(0, y - 5, row.name)}<rect class="${kind}" x="0" y="${y + 2}" width="${round(x(ratio))}" height="14" rx="2"/>${spread > 0 ? whisker : ''}${text(x(ratio + spread) + 6, y + 14, figure(ratio))}${bound}`;
  });
  const height = rows.length * 2 * LINE + LINE;
  const floor = `<line class="axis" x1="${round(x(1))}" x2="${round(x(1))}" y1="4" y2="${height - LINE}"/>${text(x(1), height - 5, 'floor', ' text-anchor="middle" class="faint"')}`;
  return svg(height, label, [floor, ...marks]);
}

/** A goal that bounds the ratio. */
function goalOf(row: Row): number | undefined {
  return row.goalIs === 'subject' || row.added !== undefined ? undefined : row.goal;
}

const PLOT = { height: 276, left: 72, right: 72, top: 44, bottom: 40 };

/** Both axes logarithmic: a series as steep as the dashed line is linear. */
export function seriesPlot(name: string, unit: string, points: readonly Row[]): string {
  const logs = points.map(({ at = 1, subject }) => [Math.log10(at), Math.log10(subject)] as const);
  const [xs, ys] = [logs.map(([x]) => x), logs.map(([, y]) => y)];
  const [left, right, first] = [Math.min(...xs), Math.max(...xs), ys[0] ?? 0];
  const linear = first + right - left;
  const [low, high] = [Math.min(...ys), Math.max(linear, ...ys)];
  const x = (value: number): number => PLOT.left + ((value - left) / (right - left || 1)) * (WIDTH - PLOT.left - PLOT.right);
  const y = (value: number): number =>
    PLOT.height - PLOT.bottom - ((value - low) / (high - low || 1)) * (PLOT.height - PLOT.top - PLOT.bottom);
  const line = logs.map(([px, py]) => `${round(x(px))},${round(y(py))}`).join(' ');
  const marks = points.map(({ at = 0, subject }, index) => {
    const [px, py] = [x(xs[index] ?? 0), y(ys[index] ?? 0)];
    return `<line class="grid" x1="${round(px)}" x2="${round(px)}" y1="${PLOT.top}" y2="${PLOT.height - PLOT.bottom}"/><circle class="dot" cx="${round(px)}" cy="${round(py)}" r="4"/>${text(px, PLOT.height - PLOT.bottom + 18, at.toLocaleString('en'), ' text-anchor="middle" class="faint"')}${text(px, py - 9, Math.round(subject).toLocaleString('en'), ' text-anchor="middle"')}`;
  });
  const dashed = `<line class="goal" x1="${round(x(left))}" y1="${round(y(first))}" x2="${round(x(right))}" y2="${round(y(linear))}"/>${text(x(right) + 6, y(linear) + 4, 'linear', ' class="faint"')}`;
  return svg(PLOT.height, name, [
    text(0, 14, unit, ' class="faint"'),
    dashed,
    `<polyline class="series" points="${line}"/>`,
    ...marks,
  ]);
}
