/** Lists with a search field and pages, as accounts and keys have them. */
import { address, h, link } from './dom.js';

export const LIMIT = 100;

export function searchForm({ params, go }, label) {
  return h(
    'form',
    {
      role: 'search',
      class: 'finder',
      onsubmit: (event) => {
        event.preventDefault();
        go({ search: event.target.elements.search.value.trim() || undefined, after: undefined });
      },
    },
    h('label', { for: 'search', class: 'sr' }, label),
    h('input', {
      id: 'search',
      name: 'search',
      type: 'search',
      value: params.search,
      placeholder: label,
      autocomplete: 'off',
      spellcheck: 'false',
    }),
    h('button', { type: 'submit' }, 'Search'),
  );
}

export function pages({ params, view }, nextCursor) {
  return h(
    'p',
    { class: 'buttons' },
    params.after !== undefined && link(address(view, { ...params, after: undefined }), 'First'),
    nextCursor !== undefined && link(address(view, { ...params, after: nextCursor }), 'Next'),
  );
}
