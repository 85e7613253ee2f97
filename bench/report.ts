/** The results as one HTML file that needs nothing beside it: goals, and for each suite its ratios, series and figures. */
import { held, judged, type Row } from './harness/statistics.ts';
import { figure, goalsPlot, htmlText, ratiosPlot, seriesPlot } from './plots.ts';

export interface Results {
  readonly node: string;
  readonly cpu: string | undefined;
  readonly cores: number;
  readonly commit: string;
  /** ISO 8601. */
  readonly at: string;
  readonly command: string;
  readonly rows: readonly Row[];
}

const STYLE = `
:root { color-scheme: light dark; --ink: #1c2b33; --faint: #5d6f79; --line: #d9e2e7; --paper: #fff; --bar: #5b9db3; --met: #2c8a5b; --missed: #c2532f; }
@media (prefers-color-scheme: dark) { :root { --ink: #dfe8ec; --faint: #93a5ae; --line: #2d3a41; --paper: #12191d; --bar: #4f90a6; --met: #4bb582; --missed: #e08560; } }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; color: var(--ink); background: var(--paper); }
h2 { margin: 2.5rem 0 .5rem; } h3 { margin: 1.5rem 0 .25rem; font-size: 1rem; } nav a { margin-right: .8rem; } a { color: inherit; }
.wide { overflow-x: auto; } table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
td, th { padding: .2rem .6rem; border-bottom: 1px solid var(--line); text-align: right; } td:first-child, th:first-child, td:nth-child(2), th:nth-child(2) { text-align: left; }
td:nth-child(2) { color: var(--faint); } td:last-child { white-space: nowrap; } td.met { color: var(--met); } td.missed { color: var(--missed); } code { overflow-wrap: anywhere; }
svg { display: block; width: 100%; max-width: 760px; margin: .5rem 0; } svg text { font: 12px system-ui, sans-serif; fill: var(--ink); paint-order: stroke; stroke: var(--paper); stroke-width: 3px; } svg text.faint { fill: var(--faint); }
rect.bar { fill: var(--bar); } rect.met, circle.met { fill: var(--met); } rect.missed, path.missed { fill: var(--missed); } line.met { stroke: var(--met); stroke-width: 2; } line.missed { stroke: var(--missed); stroke-width: 2; }
line.grid { stroke: var(--line); } line.axis { stroke: var(--faint); } line.whisker { stroke: var(--ink); } line.goal { stroke: var(--ink); stroke-dasharray: 3 2; } polyline.series { fill: none; stroke: var(--bar); stroke-width: 2; } circle.dot { fill: var(--bar); }
`;

export function reportHtml(results: Results): string {
  const { node, cpu = 'unknown', cores, commit, at, command, rows } = results;
  const suites = [...Map.groupBy(rows, ({ suite }) => suite)];
  const goals = rows.filter((row) => row.goal !== undefined && Number.isFinite(judged(row)));
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Mizu: bench</title>
<style>${STYLE}</style>
</head>
<body>
<h1>Bench</h1>
<p>${htmlText(`${cpu}, ${cores} cores, Node ${node}, commit ${commit}, ${at.slice(0, 16)}Z.`)} Command: <code>${htmlText(command)}</code>. Ratios are to the floor of the same run; the method is in bench/README.md.</p>
<nav>${suites.map(([name]) => `<a href="#${htmlText(name)}">${htmlText(name)}</a>`).join(' ')}</nav>
${goals.length === 0 ? '' : `<h2>Goals</h2>\n<p>Left of the line a goal is met. ● met, ▲ missed.</p>\n${goalsPlot(goals)}`}
${suites.map(([name, own]) => suiteHtml(name, own)).join('\n')}
</body>
</html>
`;
}

function suiteHtml(name: string, rows: readonly Row[]): string {
  const ratios = rows.filter(({ ratio }) => Number.isFinite(ratio));
  const [costs, rates] = [ratios.filter(({ atLeast }) => !atLeast), ratios.filter(({ atLeast }) => atLeast)];
  const series = Map.groupBy(
    rows.filter((row) => row.series !== undefined),
    (row) => row.series ?? '',
  );
  const plots = [
    ...(costs.length > 0 ? [`<h3>Ratio to the floor, less is better</h3>${ratiosPlot(costs, `${name}: ratios of cost`)}`] : []),
    ...(rates.length > 0 ? [`<h3>Ratio to the floor, more is better</h3>${ratiosPlot(rates, `${name}: ratios of rate`)}`] : []),
    ...[...series].map(([of, points]) => `<h3>${htmlText(of)}</h3>${seriesPlot(of, points[0]?.unit ?? '', points)}`),
  ];
  return `<h2 id="${htmlText(name)}">${htmlText(name)}</h2>\n${plots.join('\n')}\n${table(rows.filter((row) => row.series === undefined))}`;
}

function table(rows: readonly Row[]): string {
  const body = rows.map((row) => {
    const shown = [row.unit, figure(row.floor), figure(row.subject), figure(row.ratio), figure(row.added), figure(row.spread)];
    const goal = row.goal === undefined ? '<td></td>' : `<td class="${held(row) ? 'met' : 'missed'}">${boundOf(row)}</td>`;
    return `<tr><td>${htmlText(row.name)}</td>${shown.map((cell) => `<td>${htmlText(cell)}</td>`).join('')}${goal}</tr>`;
  });
  const head = ['work', 'unit', 'floor', 'Mizu', 'ratio', 'added', '±', 'goal'].map((cell) => `<th>${cell}</th>`).join('');
  return `<div class="wide"><table><tr>${head}</tr>\n${body.join('\n')}\n</table></div>`;
}

/** The goal and whether it is met, not by color alone. */
function boundOf(row: Row): string {
  return `${held(row) ? '●' : '▲'} ${row.atLeast ? '≥' : '≤'} ${figure(row.goal)}`;
}
