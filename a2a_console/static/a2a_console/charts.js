// Draws the numbers of each chart as stacked bars: hover shows the values, a drag chooses a range, a double click all of it.
// The overview is read again every ten seconds (follow.js), but not for users who prefer reduced motion.
"use strict";
const ink = (element, name) => getComputedStyle(element)[name];

const clock = (mark) => new Date(mark * 1000).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
const date = (mark) => new Date(mark * 1000).toLocaleDateString("en-GB", { day: "numeric", month: "short" });

function draw(figure) {
  const { since, step, values, unit } = JSON.parse(figure.dataset.chart);
  const place = figure.querySelector(".a2a-plot");
  const swatches = [...figure.querySelectorAll(".a2a-legend i")];
  const times = values[0].map((_, slot) => since + slot * step);
  const sums = []; // from the lowest part of a bar to the whole
  values.forEach((series, at) => sums.push(series.map((value, slot) => value + (at ? sums[at - 1][slot] : 0))));
  const axis = { stroke: () => ink(place, "color"), grid: { stroke: () => ink(place, "borderTopColor"), width: 1 }, ticks: { show: false }, font: "11px system-ui" };
  const tip = figure.querySelector(".a2a-tip");
  const bars = uPlot.paths.bars({ size: [0.8, 40], align: 1 });
  const plot = new uPlot({
    width: place.clientWidth, height: 150,
    legend: { show: false },
    cursor: { y: false, points: { show: false }, drag: { x: true, y: false } },
    scales: { x: { range: (_, low, high) => [low, Math.max(high, low + step) + (high === times.at(-1) ? step : 0)] }, y: { range: (_, low, high) => [0, Math.max(high, unit ? 0.01 : 1)] } },
    axes: [{ ...axis, size: 28, values: (_, marks) => marks.map(step < 86400 && marks.length && marks.at(-1) - marks[0] < 172800 ? clock : date) }, { ...axis, size: 54, values: (_, marks) => marks.map((mark) => (Number.isInteger(mark) || unit ? mark.toLocaleString("en") : "")) }],
    // The whole first, so that lower parts are drawn over it.
    series: [{}, ...sums.map((_, at) => ({ paths: bars, points: { show: false }, fill: () => ink(swatches[at], "backgroundColor"), width: 0 })).reverse()],
    hooks: {
      setCursor: [(chart) => {
        const slot = chart.cursor.idx;
        tip.textContent = slot == null ? "" : `${new Date(times[slot] * 1000).toLocaleString("en-GB")}: ${values.map((series, at) => `${series[slot].toLocaleString("en")}${unit} ${swatches[at].dataset.name}`).join(", ")}`;
      }],
      setSelect: [(chart) => { figure.dataset.chosen = chart.select.width > 0 ? "1" : ""; }],
    },
  }, [times, ...sums.reverse()], place);
  plot.over.addEventListener("dblclick", () => { figure.dataset.chosen = ""; });
  place.redraw = () => plot.redraw(false);
  new ResizeObserver(() => plot.setSize({ width: place.clientWidth, height: 150 })).observe(place);
}

const drawAll = () => document.querySelectorAll("[data-chart]").forEach((figure) => figure.querySelector(".uplot") || draw(figure));
drawAll();
document.addEventListener("htmx:afterSettle", drawAll);
// Another theme has other colours.
const redrawAll = () => document.querySelectorAll(".a2a-plot").forEach((place) => place.redraw?.());
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redrawAll);
new MutationObserver(redrawAll).observe(document.documentElement, { attributeFilter: ["data-theme"] });
document.addEventListener("htmx:beforeRequest", (event) => {
  if (event.target.id === "a2a-statistics" && matchMedia("(prefers-reduced-motion: reduce)").matches) event.preventDefault();
});
