// The page of a task: bars that open in place, links to events, keys. It works without this file, too.
"use strict";

document.documentElement.classList.add("a2a-js");

const upper = document.getElementById("a2a-top");

document.addEventListener("click", (event) => {
  if (event.ctrlKey || event.metaKey || event.shiftKey) return;
  const bar = event.target.closest?.(".a2a-bar, .a2a-close");
  const copy = event.target.closest?.(".a2a-copy");
  if (bar) {
    event.preventDefault();
    const url = new URL(bar.getAttribute("href"), location.href);
    history.replaceState(null, "", url);
    htmx.ajax("GET", `${upper.dataset.live}${url.search}`, { target: upper, swap: "morph:innerHTML" });
  } else if (copy) {
    copyText(copy.dataset.text ?? document.getElementById(copy.dataset.of).textContent);
    copy.textContent = "Copied";
  }
});

function copyText(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const field = document.createElement("textarea"); // without TLS there is no clipboard
  field.value = text;
  document.body.append(field);
  field.select();
  document.execCommand("copy");
  field.remove();
}

// `#event-123` may be within a line of several events, or on another page of the timeline.
function findEvent() {
  const number = Number(/^#event-(\d{1,9})$/.exec(location.hash)?.[1]);
  if (!number || document.getElementById(`event-${number}`)) return;
  const lines = [...document.querySelectorAll(".a2a-entry[data-last]")];
  const line = lines.find((one) => Number(one.id.slice(6)) <= number && number <= Number(one.dataset.last));
  const last = Number(document.getElementById("a2a-tab").dataset.last);
  if (line) line.scrollIntoView();
  else if (number <= last) location.search = `?from=${number}`;
}
findEvent();
addEventListener("hashchange", findEvent);

const ROWS = ".a2a-said, .a2a-span:not(.a2a-axis), .a2a-entry";

function step(by) {
  const rows = [...document.querySelectorAll(ROWS)].filter((row) => row.checkVisibility());
  const at = rows.findIndex((row) => row.contains(document.activeElement));
  const row = rows[Math.min(Math.max(at + by, 0), rows.length - 1)];
  if (!row) return;
  row.tabIndex = -1;
  row.focus();
  row.scrollIntoView({ block: "nearest" });
}

const KEYS = {
  j: () => step(1),
  k: () => step(-1),
  Enter: () => {
    const opens = document.activeElement.closest("summary") ?? document.activeElement.querySelector(".a2a-bar, summary, a");
    opens?.dispatchEvent(new MouseEvent("click", { bubbles: true, cancelable: true })); // a bar of an SVG has no click()
  },
  "/": () => location.assign(`${document.getElementById("a2a-back").href}#searchbar`),
  p: () => document.getElementById("a2a-above")?.click(),
  n: () => document.getElementById("a2a-below")?.click(),
  c: () => document.getElementById("a2a-cancel")?.click(),
  "?": () => document.getElementById("a2a-help").showModal(),
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select, [contenteditable], dialog[open]")) return;
  if (!Object.hasOwn(KEYS, event.key) || (event.key === "Enter" && !event.target.matches(ROWS))) return;
  event.preventDefault();
  KEYS[event.key]();
});
