/** Plots over hours or days, drawn by uPlot; its colours and letters are the page's. */
import { h } from './dom.js';
import { uPlot as UPlot } from './uplot.js';

const HEIGHT = 150;
/** Steps between the lines of what is counted. */
const WHOLE = Array.from({ length: 12 }, (_, power) => [1, 2, 5].map((digit) => digit * 10 ** power)).flat();

/**
 * @param {{ title: string, summary: string, times: number[], series: { name: string, values: (number | null)[], colour: string, bars?: boolean }[],
 *   text: (value: number) => string, isWhole?: boolean, stepSeconds: number, signal: AbortSignal }} plot `times` in seconds, `colour` is a property of the style
 */
export function plot({ title, summary, times, series, text, isWhole = false, stepSeconds, signal }) {
  const canvas = h('div', { class: 'canvas', role: 'img', 'aria-label': `${title}. ${summary}` });
  const reading = h('span', { class: 'reading' }, summary);
  const figure = h('figure', { class: 'plot' }, h('figcaption', {}, h('strong', {}, title), reading), canvas);
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(name).trim();
  const font = `12px ${style.fontFamily}`;
  const axis = {
    stroke: () => colour('--soft'),
    font,
    grid: { stroke: () => colour('--line'), width: 1 },
    ticks: { show: false },
    gap: 6,
  };
  let chart;
  const options = (width) => ({
    width,
    height: HEIGHT,
    padding: [8, 4, 0, 0],
    legend: { show: false },
    tzDate: (seconds) => UPlot.tzDate(new Date(seconds * 1000), 'Etc/UTC'),
    cursor: { points: { show: false }, drag: { x: false, y: false }, y: false, sync: { key: 'overview' } },
    // A bar begins at its time, so the last one needs its step behind it.
    scales: {
      x: { time: true, range: (_chart, first, last) => [first, last + stepSeconds] },
      y: { range: (_chart, _least, most) => [0, most > 0 ? most * 1.08 : 1] },
    },
    axes: [
      { ...axis, space: 64, grid: { show: false }, size: 26, values: (_chart, splits) => splits.map((at) => label(at, times)) },
      {
        ...axis,
        size: 58,
        space: 34,
        incrs: isWhole ? WHOLE : undefined,
        values: (_chart, splits) => splits.map((value) => text(value)),
      },
    ],
    series: [
      {},
      ...series.map(({ name, colour: own, bars }) => ({
        label: name,
        stroke: () => colour(own),
        fill: bars ? () => colour(own) : undefined,
        width: bars ? 0 : 2,
        points: { show: false },
        spanGaps: false,
        ...(bars ? { paths: UPlot.paths.bars({ size: [0.75, 40], align: 1 }) } : {}),
      })),
    ],
    hooks: {
      setCursor: [
        ({ cursor: { idx } }) => {
          const at = idx === null || idx === undefined ? undefined : times[idx];
          reading.textContent =
            at === undefined
              ? summary
              : `${moment(at, stepSeconds)}: ${series.map(({ name, values }) => `${name} ${values[idx] === null ? '–' : text(values[idx])}`).join(', ')}`;
        },
      ],
    },
  });
  // Its size is known when it stands in the page; a plot that left the page is let go.
  const sizes = new ResizeObserver(([{ contentRect }]) => {
    const width = Math.floor(contentRect.width);
    if (width < 40) return;
    if (chart === undefined) chart = new UPlot(options(width), [times, ...series.map(({ values }) => values)], canvas);
    else if (chart.width !== width) chart.setSize({ width, height: HEIGHT });
  });
  sizes.observe(canvas);
  const scheme = matchMedia('(prefers-color-scheme: dark)');
  const repaint = () => chart?.redraw(false);
  scheme.addEventListener('change', repaint);
  const end = () => {
    sizes.disconnect();
    scheme.removeEventListener('change', repaint);
    chart?.destroy();
  };
  signal.addEventListener('abort', end);
  figure.addEventListener('mizu-gone', () => {
    signal.removeEventListener('abort', end);
    end();
  });
  return figure;
}

/** Lets go of the plots that are replaced. */
export function letGo(root) {
  for (const figure of root.querySelectorAll('.plot')) figure.dispatchEvent(new Event('mizu-gone'));
}

const HOUR = 3_600;
const iso = (seconds) => new Date(seconds * 1000).toISOString();
const moment = (at, step) => (step < 24 * HOUR ? `${iso(at).slice(5, 10)} ${iso(at).slice(11, 16)}` : iso(at).slice(0, 10));

/** Hours within two days, days beyond. */
function label(at, times) {
  // Behind the last one is no room for letters.
  if (at > times.at(-1)) return '';
  const span = times.at(-1) - times[0];
  return span > 48 * HOUR ? iso(at).slice(5, 10) : iso(at).slice(11, 16);
}
