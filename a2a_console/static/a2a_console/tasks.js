// A span of the strip can be dragged over.
"use strict";
const strip = document.querySelector(".a2a-strip");
if (strip) {
  const [since, until] = [Date.parse(strip.dataset.since), Date.parse(strip.dataset.until)];
  const box = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  const place = (event) => {
    const edge = strip.getBoundingClientRect();
    return Math.min(1, Math.max(0, (event.clientX - edge.left) / edge.width));
  };
  let begin = null;
  let dragged = false;
  strip.addEventListener("dragstart", (event) => event.preventDefault());
  strip.addEventListener("pointerdown", (event) => {
    begin = place(event);
    dragged = false;
  });
  strip.addEventListener("pointermove", (event) => {
    if (begin === null || Math.abs(place(event) - begin) < 0.01) return;
    dragged = true;
    const [from, to] = [begin, place(event)].sort((a, b) => a - b);
    const shape = { class: "a2a-chosen", x: from * 600, y: 0, width: (to - from) * 600, height: 40 };
    for (const [name, value] of Object.entries(shape)) box.setAttribute(name, value);
    strip.append(box);
  });
  strip.addEventListener("click", (event) => dragged && event.preventDefault());
  document.addEventListener("pointerup", (event) => {
    if (begin !== null && dragged) {
      const [from, to] = [begin, place(event)].sort((a, b) => a - b);
      const query = new URLSearchParams(location.search);
      for (const name of ["before", "after"]) query.delete(name);
      query.set("since", new Date(since + from * (until - since)).toISOString());
      query.set("until", new Date(since + to * (until - since)).toISOString());
      location.search = query;
    }
    begin = null;
  });
}
