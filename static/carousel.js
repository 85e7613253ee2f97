/**
 * The carousel of models, after the WAI-ARIA pattern: the rotation control comes first and changes its label; focus and hover hold the
 * rotation, hiding the page too; after keyboard focus it does not start again by itself; the live region is silent while it rotates.
 */
const STEP_MS = 6_000;

/** @param {{ root: HTMLElement, rotation: HTMLButtonElement, previous: HTMLButtonElement, next: HTMLButtonElement, view: HTMLElement }} parts */
export function startCarousel({ root, rotation, previous, next, view }) {
  let slides = [...view.querySelectorAll('.slide')];
  let current = 0;
  let rotating = !matchMedia('(prefers-reduced-motion: reduce)').matches;
  let hovered = false;
  let timer = 0;

  function show(index) {
    slides[current]?.classList.remove('current');
    current = slides.length === 0 ? 0 : (index + slides.length) % slides.length;
    slides[current]?.classList.add('current');
  }

  /** Nothing to show: no carousel; one slide: nothing to turn. */
  function fit() {
    root.hidden = slides.length === 0;
    for (const button of [rotation, previous, next]) button.hidden = slides.length < 2;
    settle();
  }

  function settle() {
    clearInterval(timer);
    const moves = rotating && slides.length > 1 && !hovered && document.visibilityState === 'visible';
    timer = moves ? setInterval(() => show(current + 1), STEP_MS) : 0;
    rotation.textContent = rotating ? 'Stop rotation' : 'Start rotation';
    view.setAttribute('aria-live', rotating ? 'off' : 'polite');
  }

  function setRotating(value) {
    rotating = value;
    settle();
  }

  rotation.addEventListener('click', () => setRotating(!rotating));
  previous.addEventListener('click', () => show(current - 1));
  next.addEventListener('click', () => show(current + 1));
  root.addEventListener('focusin', (event) => {
    // The mouse's own focus is a hover already; a keyboard's stops the rotation until somebody starts it again.
    if (event.target.matches(':focus-visible')) setRotating(false);
  });
  root.addEventListener('pointerenter', () => {
    hovered = true;
    settle();
  });
  root.addEventListener('pointerleave', () => {
    hovered = false;
    settle();
  });
  document.addEventListener('visibilitychange', settle);
  fit();
  root.classList.add('ready');

  return {
    /** Takes the place of all slides; the model that was seen stays in sight if it is still there. @param {HTMLElement[]} made */
    replace(made) {
      const seen = slides[current]?.querySelector('.id').textContent;
      const place = made.findIndex((slide) => slide.querySelector('.id').textContent === seen);
      slides = made;
      current = 0;
      show(Math.max(place, 0));
      view.replaceChildren(...made);
      fit();
    },
  };
}
