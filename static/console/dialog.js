/** Forms and confirmations, as dialogs: what is wrong is said beside its field, and a change is made once however often it is sent. */
import { Failed, newId } from './api.js';
import { button, h, speak } from './dom.js';

let number = 0;

/**
 * Asks for `fields` and gives them to `submit(values, once)`; closes when that resolves, and gives its value to `done`.
 * A field: `{ name, label, type?, value?, hint?, options?, required?, placeholder? }`; empty texts are left out of the values.
 * `typed`: what must be typed before it can be sent. `isDanger`: it cannot be undone.
 */
export function openForm({ title, intro, fields = [], send, typed, isDanger = false, submit, done = () => undefined }) {
  number += 1;
  const prefix = `dialog-${number}`;
  const own = [...fields];
  if (typed !== undefined) own.push({ name: '', label: `Type ${typed} to confirm`, required: true });
  const inputs = new Map(own.map((field) => [field.name, inputOf(field, `${prefix}-${field.name}`)]));
  const error = h('p', { class: 'reason', role: 'alert' });
  const sender = h('button', { type: 'submit', class: isDanger ? 'danger' : 'main' }, send);
  const dialog = h(
    'dialog',
    { 'aria-labelledby': `${prefix}-title` },
    h(
      'form',
      { method: 'dialog' },
      h('h2', { id: `${prefix}-title` }, title),
      intro && h('p', { class: 'note' }, intro),
      own.map((field) => rowOf(field, inputs.get(field.name), `${prefix}-${field.name}`)),
      error,
      h(
        'p',
        { class: 'buttons' },
        sender,
        button('Cancel', () => dialog.close()),
      ),
    ),
  );
  let sent = { text: '', once: '' };
  dialog.querySelector('form').addEventListener('submit', async (event) => {
    event.preventDefault();
    for (const input of inputs.values()) input.removeAttribute('aria-invalid');
    error.textContent = '';
    if (typed !== undefined && inputs.get('').value !== typed) {
      fail(error, inputs.get(''), `This is not ${typed}.`);
      return;
    }
    const values = valuesOf(fields, inputs);
    const text = JSON.stringify(values);
    // The same values again are the same change, also when the first answer was lost.
    if (text !== sent.text) sent = { text, once: newId() };
    sender.disabled = true;
    try {
      const value = await submit(values, sent.once);
      dialog.close();
      speak(`${title}: done.`);
      done(value);
    } catch (thrown) {
      if (!(thrown instanceof Failed)) throw thrown;
      const again = thrown.kind === 'away' ? ' It may have been done all the same; sending it again does it once.' : '';
      fail(error, inputs.get(thrown.param?.split('.').at(-1)) ?? inputs.get(thrown.param), `${thrown.message}${again}`);
    } finally {
      sender.disabled = false;
    }
  });
  dialog.addEventListener('close', () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

function fail(error, input, text) {
  error.textContent = text;
  input?.setAttribute('aria-invalid', 'true');
  input?.focus();
}

function inputOf({ name, type = 'text', value, required, options, placeholder }, id) {
  if (type === 'select')
    return h(
      'select',
      { id, name },
      options.map(([key, text]) => h('option', { value: key, selected: key === value }, text)),
    );
  if (type === 'checkbox') return h('input', { id, name, type, checked: value === true });
  return h('input', {
    id,
    name,
    type,
    value,
    required,
    placeholder,
    autocomplete: 'off',
    spellcheck: 'false',
    'aria-describedby': `${id}-hint`,
  });
}

function rowOf({ label, type, hint }, input, id) {
  return h(
    'div',
    { class: type === 'checkbox' ? 'field check' : 'field' },
    h('label', { for: id }, label),
    input,
    type !== 'checkbox' && h('small', { id: `${id}-hint` }, hint ?? ''),
  );
}

function valuesOf(fields, inputs) {
  const values = {};
  for (const { name, type } of fields) {
    const input = inputs.get(name);
    if (type === 'checkbox') values[name] = input.checked;
    else if (input.value.trim() !== '') values[name] = input.value.trim();
  }
  return values;
}

export const WHY = { name: 'reason', label: 'Why', hint: 'Stands in the journal, with your name. May be left out.' };

/** Shows a secret, once. Escape does not close it: it cannot be shown again. */
export function showSecret({ title, secret, intro, done = () => undefined }) {
  if (secret === undefined) {
    intro =
      'It was made, but the answer that held its text was lost, and no one can read it again: rotate it, or delete it and make another.';
  }
  const field = h('code', { class: 'secret' }, secret ?? '');
  const copied = h('span', { class: 'reason', role: 'status' });
  const copy = button('Copy', async () => {
    try {
      await navigator.clipboard.writeText(secret);
      copied.textContent = 'Copied.';
    } catch {
      getSelection().selectAllChildren(field);
      copied.textContent = 'Copying is not allowed here: it is selected.';
    }
  });
  const dialog = h(
    'dialog',
    { 'aria-label': title },
    h('h2', {}, title),
    h('p', { class: 'note' }, intro ?? 'This is shown once. Only its digest is kept, so nobody can read it again.'),
    secret === undefined ? null : [field, h('p', { class: 'buttons' }, copy, copied)],
    h(
      'p',
      { class: 'buttons' },
      h(
        'button',
        { type: 'button', class: 'main', onclick: () => dialog.close() },
        secret === undefined ? 'Close' : 'I have kept it',
      ),
    ),
  );
  dialog.addEventListener('cancel', (event) => event.preventDefault());
  dialog.addEventListener('close', () => {
    dialog.remove();
    done();
  });
  document.body.append(dialog);
  dialog.showModal();
}
