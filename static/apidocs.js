/** The API docs: search within the page, the language kept while the reader moves about, copying. */
import { startCopying } from './copy.js';

startCopying();

const search = document.getElementById('search');
const found = document.getElementById('found');
const none = document.getElementById('none');
const entries = [...document.querySelectorAll('.entry')].map((entry) => ({ entry, text: entry.textContent.toLowerCase() }));
const groups = [...document.querySelectorAll('.group')];

function sift() {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  let count = 0;
  for (const { entry, text } of entries) {
    entry.hidden = !words.every((word) => text.includes(word));
    if (!entry.hidden) count += 1;
  }
  for (const group of groups) group.hidden = !group.querySelector('.entry:not([hidden])');
  none.hidden = count > 0;
  found.textContent = words.length === 0 ? '' : `${count} of ${entries.length} entries`;
}
search.addEventListener('input', sift);
if (search.value !== '') sift();

// A link into an entry that the search has hidden ends the search.
addEventListener('hashchange', () => {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (target?.closest('[hidden]')) {
    search.value = '';
    sift();
    target.scrollIntoView();
  }
});

const KEPT = 'mizu-language';
const languages = [...document.querySelectorAll('[name="language"]')];
const kept = languages.find(({ value }) => value === readKept());
if (kept) kept.checked = true;
for (const language of languages) {
  language.addEventListener('change', () => {
    try {
      localStorage.setItem(KEPT, language.value);
    } catch {
      // A browser that keeps nothing for us: the choice lasts for this visit.
    }
  });
}

function readKept() {
  try {
    return localStorage.getItem(KEPT);
  } catch {
    return null;
  }
}
