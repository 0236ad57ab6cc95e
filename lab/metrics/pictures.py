"""Dashboards as pages: what Grafana would draw, with the same titles, queries and legends, as SVG."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from html import escape
from typing import Any

__all__ = ["draw"]

COLOURS = ("#7eb26d", "#eab839", "#6ed0e0", "#ef843c", "#e24d42", "#5794f2", "#b877d9", "#fade2a")
WIDTH, HEIGHT, LEFT = 380, 150, 52
#: Seconds between two points of a line.
STEP = 1.5
Line = tuple[str, list[tuple[float, float]]]
Ask = Callable[[str], list[Any]]

PAGE = """<!doctype html><meta charset="utf-8"><title>{title}</title><style>
body {{ margin: 0; padding: 16px; background: #111217; color: #d8d9da; font: 12px Inter, Helvetica, Arial, sans-serif }}
h1 {{ font-size: 18px; font-weight: 500; margin: 0 0 12px }} h2 {{ font-size: 13px; font-weight: 500; margin: 0 0 6px }}
main {{ display: grid; grid-template-columns: repeat(3, 1fr); gap: 8px }}
section {{ background: #181b1f; border: 1px solid #2c3235; border-radius: 2px; padding: 8px; min-height: 215px }}
text {{ fill: #9fa3a8; font-size: 10px }} path {{ fill: none; stroke-width: 1.5 }}
span {{ margin-right: 10px; white-space: nowrap }} b {{ display: inline-block; width: 12px; height: 3px; margin: 3px 4px }}
</style><h1>{title}</h1><main>{panels}</main>"""


def draw(dashboard: dict[str, Any], ask: Ask) -> str:
    """The page of a dashboard; `ask` has the series of a query."""
    panels = "".join(_draw_panel(panel, ask) for panel in dashboard["panels"])
    return PAGE.format(title=escape(dashboard["title"]), panels=panels)


def _draw_panel(panel: dict[str, Any], ask: Ask) -> str:
    lines = [line for target in panel["targets"] for line in _lines(target, ask)]
    points = [point for _, line in lines for point in line]
    begin, end = min((at for at, _ in points), default=0), max((at for at, _ in points), default=1)
    top = _round_up(max((value for _, value in points), default=1))
    unit = panel["fieldConfig"]["defaults"]["unit"]
    drawn = [_grid(top * part / 2, 1 - part / 2, unit) for part in range(3)]
    legend = []
    for number, (name, line) in enumerate(lines):
        colour = COLOURS[number % len(COLOURS)]
        path, before = "", -math.inf
        for at, value in line:
            x = LEFT + (at - begin) / max(end - begin, 1) * (WIDTH - LEFT)
            # A gap stays one.
            path += (
                f"{'L' if at - before <= STEP else 'M'}{x:.1f} {5 + (1 - value / top) * HEIGHT:.1f}"
            )
            before = at
        drawn.append(f'<path d="{path}" stroke="{colour}"/>')
        legend.append(f'<span><b style="background: {colour}"></b>{escape(name)}</span>')
    box = f"0 0 {WIDTH} {HEIGHT + 10}"
    svg = f'<svg viewBox="{box}">{"".join(drawn)}</svg>'
    return f"<section><h2>{escape(panel['title'])}</h2>{svg}<div>{''.join(legend)}</div></section>"


def _lines(target: dict[str, str], ask: Ask) -> Iterator[Line]:
    for series in ask(target["expr"]):
        name = target["legendFormat"]
        for label, value in series["metric"].items():
            name = name.replace(f"{{{{{label}}}}}", value)
        points = [(float(at), float(value)) for at, value in series["values"]]
        yield name, [point for point in points if math.isfinite(point[1])]


def _grid(value: float, height: float, unit: str) -> str:
    y = 5 + height * HEIGHT
    label = {"bytes": f"{value / 2**20:.0f} MB", "s": f"{value:g} s"}.get(unit, f"{value:g}")
    line = f'<path d="M{LEFT} {y:.0f}H{WIDTH}" stroke="#2c3235"/>'
    return f'{line}<text x="{LEFT - 6}" y="{y + 3:.0f}" text-anchor="end">{label}</text>'


def _round_up(value: float) -> float:
    """The next round number, of one digit."""
    power = 10.0 ** math.floor(math.log10(value)) if value > 0 else 1.0
    return next(power * step for step in (1, 2, 4, 6, 8, 10) if power * step >= value * 0.999)
