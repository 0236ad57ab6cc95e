// The figures are asked for again every ten seconds, but not while somebody reads a table of them, is at one of their
// links, looks at another window, or wants nothing to move.
"use strict";
document.addEventListener("htmx:beforeRequest", (event) => {
  const figures = document.getElementById("a2a-figures");
  if (event.target !== figures) return;
  const still = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
  const read = figures.querySelector("details[open]") || figures.contains(document.activeElement);
  if (still || read || document.hidden) event.preventDefault();
});
