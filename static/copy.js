/**
 * The base URL of the examples, and the copy buttons that need it. Without a base URL that is safe to paste, copying is off and the
 * page says why. A copy is both seen (the button) and heard (the status region).
 */
const SEEN_MS = 2_000;

/** @returns {{ url: string } | { reason: string }} */
export function safeBaseUrl() {
  const given = document.querySelector('meta[name="public-base-url"]')?.content;
  if (given) return { url: given };
  const { protocol, origin, href } = location;
  if (protocol !== 'http:' && protocol !== 'https:') return { reason: 'this page was not opened over http or https' };
  if (origin === 'null' || self.origin === 'null') return { reason: 'this page has no origin of its own' };
  if (self !== top) return { reason: 'this page is inside a frame of another page' };
  const { username, password } = new URL(href);
  if (username !== '' || password !== '') return { reason: 'the address of this page holds a user name' };
  return { url: origin };
}

/** Names the base URL everywhere (`.base`) and brings the copy buttons (`.copy`) to life, or says why not. */
export function startCopying() {
  const base = safeBaseUrl();
  if ('reason' in base) {
    for (const place of document.querySelectorAll('.copy-reason')) {
      place.textContent = `Copying is off: ${base.reason}, so its address is not safe to paste. Ask the operator for the base URL.`;
    }
    return;
  }
  for (const place of document.querySelectorAll('.base')) place.textContent = base.url;
  const spoken = document.getElementById('spoken');
  for (const button of document.querySelectorAll('.copy')) {
    const label = button.firstChild;
    let seen = 0;
    button.disabled = false;
    button.addEventListener('click', async () => {
      const text = button.dataset.copy === 'base' ? base.url : button.closest('.example').querySelector('code').textContent;
      const copied = await copyText(text);
      clearTimeout(seen);
      button.classList.toggle('done', copied);
      label.textContent = copied ? 'Copied' : 'Not copied';
      // Emptied first, so that the same words are spoken again.
      spoken.textContent = '';
      spoken.textContent = copied
        ? `Copied${button.textContent.slice(label.length)}.`
        : 'Not copied: the browser refused. Select the text instead.';
      seen = setTimeout(() => {
        button.classList.remove('done');
        label.textContent = 'Copy';
        spoken.textContent = '';
      }, SEEN_MS);
    });
  }
}

async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // No clipboard API outside of secure contexts, or no permission: the older way asks for neither.
    return copyBySelection(text);
  }
}

function copyBySelection(text) {
  const focused = document.activeElement;
  const area = document.createElement('textarea');
  area.value = text;
  area.readOnly = true;
  area.className = 'sr';
  document.body.append(area);
  area.select();
  const copied = document.execCommand('copy');
  area.remove();
  focused?.focus();
  return copied;
}
