// Keys of the inbox: j and k go through the queue, a approves, d denies, e goes to the answer, which Ctrl+Enter sends, x selects.
"use strict";
const links = () => [...document.querySelectorAll(".a2a-rows a")];
const current = () => document.querySelector(".a2a-rows a[aria-current]");

document.addEventListener("click", (event) => {
  const link = event.target.closest(".a2a-rows a");
  if (!link) return;
  current()?.removeAttribute("aria-current");
  link.setAttribute("aria-current", "true");
  history.replaceState(null, "", link.href);
});

// Where the question stands below the list, it is shown once it is there.
document.addEventListener("htmx:afterSettle", () => {
  if (matchMedia("(max-width: 1024px)").matches) document.getElementById("a2a-detail")?.scrollIntoView();
});

document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) event.target.form?.requestSubmit();
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input:not([type=checkbox], [type=radio]), textarea, select, dialog")) return;
  const detail = document.getElementById("a2a-detail");
  const act = {
    j: () => (links()[links().indexOf(current()) + 1] || document.getElementById("a2a-next"))?.click(),
    k: () => links()[links().indexOf(current()) - 1]?.click(),
    x: () => current()?.closest("li").querySelector("input")?.click(),
    e: () => detail?.querySelector(".a2a-answer :is(textarea, select, input:not([type=hidden]))")?.focus(),
    a: () => detail?.querySelector("[data-key=a]")?.click(),
    d: () => detail?.querySelector("[data-key=d]")?.click(),
  }[event.key];
  if (!act) return;
  event.preventDefault();
  act();
  current()?.scrollIntoView({ block: "nearest" });
});
