/** The results as one HTML file that needs nothing beside it: a table, a bar for each ratio, a plot for each series. */
import type { Row } from './harness/statistics.ts';
import { held } from './harness/statistics.ts';

export interface Results {
  readonly node: string;
  readonly cpu: string | undefined;
  readonly cores: number;
  readonly commit: string;
  readonly command: string;
  readonly rows: readonly Row[];
}

const WIDTH = 640;
const BAR_HEIGHT = 22;
const PLOT_HEIGHT = 220;
const MARGIN = 48;

export function reportHtml(results: Results): string {
  const { node, cpu = 'unknown', cores, commit, command, rows } = results;
  const plain = rows.filter(({ series }) => series === undefined);
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Mizu: bench</title>
<style>
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #1c2b33; }
table { border-collapse: collapse; width: 100%; } td, th { padding: .2rem .6rem; border-bottom: 1px solid #d9e2e7; text-align: right; }
td:first-child, th:first-child { text-align: left; } .missed { color: #a8321c; } .held { color: #1c7a4d; }
svg { display: block; margin: 1rem 0; } svg text { font: 12px system-ui, sans-serif; fill: #1c2b33; }
</style>
<h1>Bench</h1>
<p>${htmlText(`${cpu}, ${cores} cores, Node ${node}, commit ${commit}.`)} Command: <code>${htmlText(command)}</code>. Ratios are to the floor of the same run; the method is in bench/README.md.</p>
<h2>Ratios to the floor</h2>
${bars(plain.filter(({ ratio }) => ratio !== undefined))}
<h2>Cost against size</h2>
${plots(rows)}
<h2>Every figure</h2>
${table(plain)}
</html>
`;
}

function bars(rows: readonly Row[]): string {
  const longest = Math.max(1, ...rows.map(({ ratio = 0 }) => ratio));
  const scale = (value: number): number => (value / longest) * (WIDTH - 60);
  const marks = rows.map((row, index) => {
    const y = index * 2 * BAR_HEIGHT;
    const ratio = row.ratio ?? 0;
    const color = held(row) === false ? '#d98b7b' : '#7fb6c9';
    const goal =
      row.goal === undefined || row.goalIs === 'subject'
        ? ''
        : `<line x1="${scale(row.goal)}" x2="${scale(row.goal)}" y1="${y + BAR_HEIGHT - 4}" y2="${y + 2 * BAR_HEIGHT - 4}" stroke="#1c2b33" stroke-dasharray="3 2"/>`;
    return `<text x="0" y="${y + BAR_HEIGHT - 6}">${htmlText(row.name)}</text><rect x="0" y="${y + BAR_HEIGHT}" width="${scale(ratio)}" height="${BAR_HEIGHT - 8}" fill="${color}"/><text x="${scale(ratio) + 6}" y="${y + 2 * BAR_HEIGHT - 11}">${figure(ratio)}</text>${goal}`;
  });
  return `<svg width="${WIDTH}" height="${rows.length * 2 * BAR_HEIGHT + 8}" role="img" aria-label="Ratios to the floor">${marks.join('')}</svg>`;
}

function plots(rows: readonly Row[]): string {
  const series = new Map<string, Row[]>();
  for (const row of rows) {
    if (row.series === undefined) continue;
    const points = series.get(row.series) ?? [];
    points.push(row);
    series.set(row.series, points);
  }
  return [...series].map(([name, points]) => plot(name, points)).join('\n');
}

/** Both axes logarithmic: a straight line with the slope of the dashed one is linear cost. */
function plot(name: string, points: readonly Row[]): string {
  const logs = points.map(({ at = 1, subject }) => [Math.log10(at), Math.log10(subject)] as const);
  const [xs, ys] = [logs.map(([x]) => x), logs.map(([, y]) => y)];
  const [left, right, low, high] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
  const x = (value: number): number => MARGIN + ((value - left) / (right - left || 1)) * (WIDTH - 2 * MARGIN);
  const y = (value: number): number => PLOT_HEIGHT - MARGIN - ((value - low) / (high - low || 1)) * (PLOT_HEIGHT - 2 * MARGIN);
  const line = logs.map(([px, py]) => `${x(px)},${y(py)}`).join(' ');
  const labels = points.map(
    ({ at = 0, subject }, index) =>
      `<circle cx="${x(xs[index] ?? 0)}" cy="${y(ys[index] ?? 0)}" r="3" fill="#2b7a94"/><text x="${x(xs[index] ?? 0) - 16}" y="${PLOT_HEIGHT - 16}">${at}</text><text x="${x(xs[index] ?? 0) + 6}" y="${y(ys[index] ?? 0) - 6}">${figure(subject)}</text>`,
  );
  const linear = `<line x1="${x(left)}" y1="${y(low)}" x2="${x(right)}" y2="${y(low + right - left)}" stroke="#9aa9b1" stroke-dasharray="4 3"/>`;
  return `<h3>${htmlText(name)}</h3><svg width="${WIDTH}" height="${PLOT_HEIGHT}" role="img" aria-label="${htmlText(name)}">${linear}<polyline points="${line}" fill="none" stroke="#2b7a94" stroke-width="2"/>${labels.join('')}</svg>`;
}

function table(rows: readonly Row[]): string {
  const body = rows.map((row) => {
    const verdict = held(row);
    const shown = [row.unit, figure(row.floor), figure(row.subject), figure(row.ratio), figure(row.spread), figure(row.added)];
    const goal = row.goal === undefined ? '' : `<span class="${verdict ? 'held' : 'missed'}">${figure(row.goal)}</span>`;
    return `<tr><td>${htmlText(row.name)}</td>${shown.map((cell) => `<td>${htmlText(cell)}</td>`).join('')}<td>${goal}</td></tr>`;
  });
  return `<table><tr><th>work</th><th>unit</th><th>floor</th><th>Mizu</th><th>ratio</th><th>±</th><th>added</th><th>goal</th></tr>${body.join('\n')}</table>`;
}

export function figure(value: number | undefined): string {
  return value === undefined ? '' : value.toFixed(Math.abs(value) < 10 ? 2 : 0);
}

function htmlText(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
}
