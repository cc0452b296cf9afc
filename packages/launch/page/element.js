/** Makes an element. Children that are text become text, never markup. */
export function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name in made) made[name] = value;
    else made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

/** Sets the text only if it is another one, so that screen readers do not read it again. */
export function setText(target, text) {
  if (target.textContent !== text) target.textContent = text;
}

/** Returns the value of a colour of the style sheet. */
export const colorOf = (name) =>
  getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

/** Calls `listener` when the user changes between light and dark. */
export const onScheme = (listener) =>
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', listener);
