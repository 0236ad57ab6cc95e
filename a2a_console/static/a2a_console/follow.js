// What pages that follow have in common: they ask only while they are seen, and take nothing away from their user.
"use strict";

// Folds, rows that are open, and what is being filled in stay as the user has left them.
const OWN = "[data-keep], li[id] > input";
Object.assign(Idiomorph.defaults.callbacks, {
  beforeAttributeUpdated: (name, element) => !(["tabindex", "aria-current"].includes(name) || (name === "open" && element.tagName === "DETAILS")),
  beforeNodeMorphed: (old, fresh) => !(old.matches?.(OWN) && old.id === fresh.id),
});

// A part that is replaced as a whole waits while something in it is open, chosen, selected or in focus.
const BUSY = ".a2a-chart details[open], input:checked, option:checked:not([value='']), [data-chosen='1'], .uplot:hover";

function isBusy(part) {
  const selection = getSelection();
  const own = [...part.querySelectorAll(BUSY), document.activeElement, selection.isCollapsed ? null : selection.anchorNode.parentElement];
  return own.some((one) => part.contains(one) && !one.closest("[data-keep], li[id]"));
}

const isPoll = (element) => element.matches('[hx-trigger^="every"]');
const waits = (part) => part.matches(".a2a-follows") && isBusy(part);

function tell(poll, text) {
  if (poll.matches(".a2a-live") && poll.textContent !== text) poll.textContent = text;
}

document.addEventListener("htmx:beforeRequest", (event) => {
  const { elt, target } = event.detail;
  if (!isPoll(elt) || !(document.hidden || waits(target))) return;
  event.preventDefault();
  if (!document.hidden) tell(elt, "paused while you use it");
});

// The user may have begun while the answer was under way. An answer without the part is the page to sign in.
document.addEventListener("htmx:beforeSwap", (event) => {
  const { target, serverResponse, xhr, requestConfig: { elt } } = event.detail;
  if (!isPoll(elt) || !target.matches(".a2a-follows") || xhr.status >= 400) return;
  const isGone = !serverResponse.includes(`id="${target.id}"`);
  if (isGone) {
    elt.removeAttribute("hx-get");
    htmx.process(elt);
  }
  event.detail.shouldSwap = !isGone && !waits(target);
  tell(elt, isGone ? "Nothing more can be followed here: you are signed out. Load the page again." : "live");
});

// A poll that fails says so; the next one that succeeds puts "live" back.
for (const fault of ["htmx:sendError", "htmx:responseError"]) {
  document.addEventListener(fault, () => {
    for (const live of document.querySelectorAll(".a2a-live")) live.textContent = "connection lost, trying again …";
  });
}

// Django's script of actions knows the boxes that were there when it began.
const known = new WeakSet();

function meet() {
  const boxes = document.querySelectorAll("tr input.action-select");
  const isNew = [...boxes].some((box) => !known.has(box));
  boxes.forEach((box) => known.add(box));
  return isNew ? boxes : null;
}
meet();
document.addEventListener("htmx:afterSwap", () => {
  const boxes = meet();
  if (boxes) Actions(boxes);
});
