"""Pictures as inline SVG, made offline with Altair and vl-convert (optional extra ``report``).

Colours are CSS variables of the page, so that one drawing serves light, dark and print. Every picture
has a text alternative in the story; where the extra is not installed the page shows that instead.
"""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from analyzer.report.story.telling import percent
from analyzer.report.story.values import Bars, Cell, Picture, Strip

WIDTH = 720
LANE_HEIGHT = 84
BAR_HEIGHT = 26
CLEARED_UNITS = 6  # a block for work that is only counted
REPORT_UNITS = 4
LABEL_PIXELS = 300
FLOOR = 0.07  # an op without suspicion is still an op
COLUMNS = 12  # a few ops are drawn as narrow as many
ROOM = 0.72  # of a lane, for the bars; the rest is for the words
COLOURS = {
    "cleared": "var(--cleared)",
    "other": "var(--other)",
    "suspect": "var(--other)",
    "first": "var(--suspect)",
    "report": "var(--report)",
}
INK = "var(--ink)"
LINE = "var(--line)"
# The whole is one image with one name; parts with roles and no names of their own are an axe finding.
_INNER_ROLES = re.compile(r' (?:role="graphics-\w+"|aria-roledescription="[^"]*"|aria-label="[^"]*")')
_NAMESPACES = re.compile(r'(?<=<svg )(?: ?xmlns(?::\w+)?="[^"]*")+ ?')  # inside a page they are noise
Values = list[dict[str, object]]


def draw(picture: Picture) -> str | None:
    """The picture as an ``<svg>`` element; null where the extra ``report`` is not installed."""
    if not available():
        return None
    chart = _strip(picture.chart) if isinstance(picture.chart, Strip) else _bars(picture.chart)
    svg: str = import_module("vl_convert").vegalite_to_svg(_styled(chart).to_dict())
    label = html.escape(picture.alt, quote=True)
    svg = _INNER_ROLES.sub("", svg)
    return _NAMESPACES.sub("", svg).replace("<svg ", f'<svg role="img" aria-label="{label}" ', 1)


def available() -> bool:
    """Whether pictures can be drawn here."""
    return find_spec("altair") is not None and find_spec("vl_convert") is not None


def _altair() -> Any:
    """Imported late and by name: the extra is optional, and the module takes its time to load."""
    return import_module("altair")


def _styled(chart: Any) -> Any:
    return (
        chart.configure(background="transparent", aria=False, font="system-ui, sans-serif", padding=4)
        .configure_view(stroke=None)
        .configure_axis(labelColor=INK, titleColor=INK, domainColor=LINE, tickColor=LINE, gridColor=LINE)
        .configure_text(color=INK, fontSize=12)
    )


def _bars(bars: Bars) -> Any:
    alt = _altair()

    values: Values = [
        {
            "label": bar.label,
            "value": bar.value,
            "kind": "first" if bar.marked else "other",
            "told": _told(bars, bar.value),
        }
        for bar in bars.bars
    ]
    # The browser's font can be wider than the one measured here: a fixed margin keeps labels whole.
    axis = alt.Axis(
        labelLimit=LABEL_PIXELS, minExtent=LABEL_PIXELS, maxExtent=LABEL_PIXELS, ticks=False, domain=False
    )
    base = alt.Chart(alt.Data(values=values)).encode(
        y=alt.Y("label:N", sort=None, title=None, axis=axis),
        x=alt.X("value:Q", title=None, axis=None, scale=alt.Scale(domain=[0, _full(bars) * 1.15])),
    )
    drawn = base.mark_bar(height={"band": 0.62}).encode(color=_colours())
    told = base.mark_text(align="left", dx=6).encode(text="told:N")
    return alt.layer(drawn, told).properties(width=WIDTH - LABEL_PIXELS, height=BAR_HEIGHT * len(values))


def _full(bars: Bars) -> float:
    return max((bar.value for bar in bars.bars), default=0.0) or 1.0


def _told(bars: Bars, value: float) -> str:
    return percent(value) if bars.unit == "share" else f"{value:,.1f} ms"


def _colours() -> Any:
    alt = _altair()

    scale = alt.Scale(domain=list(COLOURS), range=list(COLOURS.values()))
    return alt.Color("kind:N", scale=scale, legend=None)


def _strip(strip: Strip) -> Any:
    """One row a lane, one column a launch; the height of a bar is its share of the suspicion."""
    alt = _altair()

    lanes = sorted({cell.lane for cell in strip.cells})
    places = _places(strip.cells)
    width = max(places[-1][1], COLUMNS)
    x = alt.X("x:Q", axis=None, scale=alt.Scale(domain=[0, width], nice=False, zero=False))
    y = alt.Y("y:Q", axis=None, scale=alt.Scale(domain=[0, len(lanes)], nice=False))
    blocks = alt.Chart(alt.Data(values=_blocks(strip.cells, places, lanes))).mark_rect(cornerRadius=2)
    floors = alt.Chart(alt.Data(values=[{"y": at, "x": 0, "x2": width} for at in range(len(lanes))]))
    texts = alt.Chart(alt.Data(values=_texts(strip.cells, places, lanes, width)))
    layers = [
        floors.mark_rule(color=LINE).encode(x=x, x2="x2:Q", y=y),
        blocks.encode(x=x, x2="x2:Q", y=y, y2="y2:Q", color=_colours()),
        *(
            texts.transform_filter(f"datum.side === '{side}'")
            .mark_text(align=side, fontWeight=600)
            .encode(x=x, y=y, text="text:N")
            for side in ("left", "center", "right")
        ),
    ]
    return alt.layer(*layers).properties(width=WIDTH, height=LANE_HEIGHT * len(lanes))


def _places(cells: Sequence[Cell]) -> list[tuple[float, float]]:
    """Left and right border of each cell, in columns."""
    places: list[tuple[float, float]] = []
    at = 0.0
    for cell in cells:
        units = {"report": REPORT_UNITS}.get(cell.kind, CLEARED_UNITS if cell.count > 1 else 1)
        places.append((at, at + units))
        at += units
    return places


def _blocks(cells: Sequence[Cell], places: Sequence[tuple[float, float]], lanes: Sequence[str]) -> Values:
    values: Values = []
    for cell, (begin, end) in zip(cells, places, strict=True):
        floor = len(lanes) - 1 - lanes.index(cell.lane)
        left, right = _edges(cell, begin, end)
        wide = cell.kind in {"cleared", "report"}
        height = (0.5 if cell.count > 1 else FLOOR) if wide else FLOOR + cell.share * (ROOM - FLOOR)
        height = ROOM if cell.kind == "report" else height
        kind = "first" if cell.rank == 1 else cell.kind
        values.append({"x": left, "x2": right, "y": floor, "y2": floor + height, "kind": kind})
    return values


def _edges(cell: Cell, begin: float, end: float) -> tuple[float, float]:
    """The report is a line, everything else a block with a gap on both sides."""
    if cell.kind == "report":
        middle = (begin + end) / 2
        return middle - 0.15, middle + 0.15
    gap = (end - begin) * 0.06 if cell.count > 1 else 0.08
    return begin + gap, end - gap


def _texts(
    cells: Sequence[Cell], places: Sequence[tuple[float, float]], lanes: Sequence[str], width: float
) -> Values:
    """Words above the blocks; lane names where there are several."""
    values: Values = []
    for cell, (left, right) in zip(cells, places, strict=True):
        floor = len(lanes) - 1 - lanes.index(cell.lane)
        middle = (left + right) / 2
        line = "" if cell.line is None else f", line {cell.line}"
        if cell.kind == "cleared" and cell.count > 1:
            values.append(_text(middle, floor + 0.25, f"{cell.count:,} cleared"))
        elif cell.kind == "report":
            side = "right" if middle > width * 0.85 else "left"
            values.append(_text(right if side == "right" else left, floor + 0.86, f"reported{line}", side))
        elif cell.rank == 1:
            side = "left" if middle < width * 0.12 else "right" if middle > width * 0.65 else "center"
            top = floor + FLOOR + cell.share * (ROOM - FLOOR)
            values.append(_text(middle, min(top + 0.12, floor + 0.86), f"suspect 1{line}", side))
    if len(lanes) > 1:
        values += [_text(0, len(lanes) - at - 0.08, lane, "left") for at, lane in enumerate(lanes)]
    return values


def _text(x: float, y: float, text: str, side: str = "center") -> dict[str, object]:
    return {"x": x, "y": y, "text": text, "side": side}
