// Ctrl+K opens the search of the console in a dialog. Without it, the field in the header is a link to the same page.
"use strict";
const opener = document.getElementById("a2a-search");
const dialog = document.createElement("dialog");
dialog.className = "a2a-palette";
dialog.setAttribute("aria-label", "Find");
let asked = 0;

async function load(words) {
  const mine = ++asked;
  const answer = await fetch(`${opener.href}?q=${encodeURIComponent(words)}`);
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  if (mine !== asked) return; // a later one is under way
  const form = page.querySelector(".a2a-find");
  if (form && !dialog.firstChild) dialog.append(form, page.getElementById("a2a-found"));
  else dialog.querySelector("#a2a-found").replaceWith(page.getElementById("a2a-found"));
}

async function open(event) {
  if (document.querySelector("main .a2a-find")) return; // the page itself
  event.preventDefault();
  if (!dialog.firstChild) {
    document.body.append(dialog);
    await load("");
    dialog.querySelector("form").action = opener.href;
    let timer = 0;
    dialog.querySelector("input").addEventListener("input", (typed) => {
      clearTimeout(timer);
      timer = setTimeout(() => load(typed.target.value), 150);
    });
  }
  if (!dialog.open) dialog.showModal();
  dialog.querySelector("input").select();
}

// Arrows go through what was found; Enter in the field opens the first.
dialog.addEventListener("keydown", (event) => {
  const links = [...dialog.querySelectorAll("#a2a-found a")];
  const at = links.indexOf(document.activeElement);
  if (event.key === "ArrowDown") (links[at + 1] || links[0])?.focus();
  else if (event.key === "ArrowUp") (links[at - 1] || dialog.querySelector("input")).focus();
  else if (event.key === "Enter" && at < 0 && links.length) links[0].click();
  else return;
  event.preventDefault();
});
dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
// On a phone the sidebar is a row, which begins at the page that is shown.
document.querySelector("#nav-sidebar [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
// A bulk job whose page was opened here has a line on every other page, until its end was shown.
const toasts = document.getElementById("a2a-toasts");
const listJobs = () => JSON.parse(localStorage.getItem("a2a-jobs") ?? "[]");
const keepJobs = (jobs) => localStorage.setItem("a2a-jobs", JSON.stringify(jobs));

async function follow() {
  for (const url of document.hidden ? [] : listJobs()) {
    const answer = await fetch(url).catch(() => null);
    if (!answer || answer.status >= 500) continue;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const fresh = page.querySelector(".a2a-toast");
    const forget = () => keepJobs(listJobs().filter((one) => one !== url));
    if (!fresh?.matches("[data-open]")) forget(); // it has ended, or is not there for who is signed in now
    if (!fresh) continue;
    fresh.dataset.url = url;
    fresh.querySelector("button").addEventListener("click", () => { forget(); fresh.remove(); });
    [...toasts.children].find((one) => one.dataset.url === url)?.remove();
    toasts.append(fresh);
  }
  if (listJobs().length) setTimeout(follow, 2000);
}
const shown = document.querySelector(".a2a-job[data-toast]")?.dataset.toast;
if (shown) keepJobs([...new Set([...listJobs(), shown])]);
else if (toasts) follow();
if (opener) {
  opener.addEventListener("click", open);
  document.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") open(event);
  });
}
