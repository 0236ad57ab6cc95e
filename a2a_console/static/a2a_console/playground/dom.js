// The only way in which nodes are made here: text is text, so what strangers wrote cannot become markup.

/** `make("p", {class: "quiet"}, "text", node)`. Properties are attributes; a function is a listener; null is left out. */
export function make(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (typeof value === "function") node.addEventListener(name, value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, String(value));
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

export const byId = (id) => document.getElementById(id);

export function options(select, pairs, chosen) {
  select.replaceChildren(...pairs.map(([value, text]) => make("option", { value, selected: value === chosen }, text)));
}

/** A text that is shown when its title is opened. */
export const folded = (title, text) => make("details", {}, make("summary", {}, title), make("pre", { tabindex: 0, "aria-label": title }, text));

/** Do something at the next frame of the screen, or soon, in a tab that is hidden and has none. */
export function soon(work) {
  const once = () => { clearTimeout(timer); cancelAnimationFrame(frame); work(); };
  const timer = setTimeout(once, 250);
  const frame = requestAnimationFrame(once);
}

/** A unique id. */
export const unique = () => Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");

/** JSON for people, if that loses nothing of it. */
export function pretty(text) {
  try {
    const value = JSON.parse(text);
    return JSON.stringify(value) === text ? JSON.stringify(value, null, 2) : text;
  } catch {
    return text;
  }
}
