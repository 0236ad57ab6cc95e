// The page reads the statistics again every ten seconds, but not while a table is open or a link has the focus, while
// the window is hidden, or for users who prefer reduced motion.
"use strict";
document.addEventListener("htmx:beforeRequest", (event) => {
  const statistics = document.getElementById("a2a-statistics");
  if (event.target !== statistics) return;
  const still = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
  const read = statistics.querySelector("details[open]") || statistics.contains(document.activeElement);
  if (still || read || document.hidden) event.preventDefault();
});
