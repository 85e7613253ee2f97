/** Sorting and filtering of the price table. The order and the filter that a reader chose outlive a refresh of the prices. */
import { compareDecimals, priceRows } from './price-rows.js';

/** @param {{ table: HTMLTableElement, body: HTMLElement, filter: HTMLInputElement, shown: HTMLElement, empty: HTMLElement }} parts */
export function createPriceTable({ table, body, filter, shown, empty }) {
  const buttons = [...table.querySelectorAll('[data-sort]')];
  /** Undefined: the gateway's own order. */
  let order;
  let entries = [...body.rows].map((row, position) => ({ row, position, ...keysOfRow(row) }));

  for (const button of buttons) {
    button.addEventListener('click', () => {
      const key = button.dataset.sort;
      // Ascending, descending, then the gateway's own order again.
      if (order?.key !== key) order = { key, sign: 1 };
      else order = order.sign === 1 ? { key, sign: -1 } : undefined;
      for (const other of buttons) {
        const mine = other === button && order;
        other.closest('th').setAttribute('aria-sort', mine ? (order.sign === 1 ? 'ascending' : 'descending') : 'none');
      }
      arrange();
    });
  }
  filter.addEventListener('input', sift);
  if (filter.value !== '') sift();

  function arrange() {
    const sorted = order ? entries.toSorted((a, b) => compare(a, b, order)) : entries;
    body.replaceChildren(...sorted.map(({ row }) => row));
  }

  function sift() {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    for (const { row, id, kind } of entries) {
      const text = `${id} ${kind}`.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
      if (!row.hidden) count += 1;
    }
    shown.textContent = words.length === 0 ? '' : `${count} of ${entries.length} models`;
    empty.textContent = entries.length === 0 ? 'This gateway has no priced models yet.' : count === 0 ? 'No model matches.' : '';
  }

  return {
    /** @param {readonly object[]} models of a checked price list */
    show(models) {
      const rows = priceRows(models);
      entries = models.map((model, position) => ({ row: rows[position], position, ...model }));
      sift();
      arrange();
    },
  };
}

/** Models without a price stand last in either direction. */
function compare(a, b, { key, sign }) {
  if (key === 'id') return sign * a.id.localeCompare(b.id, 'en', { numeric: true }) || a.position - b.position;
  const [left, right] = [a.prices[key], b.prices[key]];
  if (left === undefined || right === undefined) {
    return Number(left === undefined) - Number(right === undefined) || a.position - b.position;
  }
  return sign * compareDecimals(left, right) || a.position - b.position;
}

/** The sort keys of a row that the server wrote. */
function keysOfRow(row) {
  const [, input, cached, output] = row.cells;
  const prices = {};
  for (const [key, cell] of [
    ['input', input],
    ['cached_input', cached],
    ['output', output],
  ]) {
    if (cell.classList.contains('price')) prices[key] = cell.textContent;
  }
  return { id: row.querySelector('.id').textContent, kind: row.querySelector('.kind').textContent, prices };
}
