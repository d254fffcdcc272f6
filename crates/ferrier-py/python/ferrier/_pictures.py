"""Pictures as SVG, which notebooks show."""

from __future__ import annotations

import os
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ferrier._layout import Layout
    from ferrier._plan import Plan

_COLOURS = {
    "transform": "#4477aa", "barrier": "#bbbbbb", "copy": "#66ccee", "post": "#ccbb44", "wait": "#ee6677",
    "encode": "#228833", "decode": "#aa3377",
}


class Picture:
    """An SVG image: notebooks show it, `save` writes it to a file."""

    def __init__(self, svg: str) -> None:
        self.svg = svg

    def _repr_svg_(self) -> str:
        return self.svg

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the file."""
        Path(path).write_text(self.svg, encoding="utf-8")

    def __repr__(self) -> str:
        return f"<ferrier.Picture: {len(self.svg)} bytes of SVG>"


def _picture(width: float, height: float, parts: list[str]) -> Picture:
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}"'
    return Picture("\n".join([head + ' font-family="sans-serif" font-size="12">', '<rect width="100%" height="100%" fill="white"/>', *parts, "</svg>"]))


def _text(x: float, y: float, text: str, more: str = "") -> str:
    return f'<text x="{x:g}" y="{y:g}" {more}>{escape(text)}</text>'


def _parts(layout: Layout, ndim: int) -> str:
    counts = [len({(box[axis].start, box[axis].stop) for box in layout.boxes}) for axis in range(ndim)]
    return "x".join(map(str, counts))


def steps_picture(title: str, traffic: list[dict[str, Any]], before: Layout, after: Layout) -> Picture:
    """The steps of a plan, with what moves between ranks in each."""
    ndim = len(before.boxes[0])
    rows = [(f"input: {_parts(before, ndim)} parts", "", "#eeeeee")]
    for step in traffic:
        moved = "" if step["local"] else f"{step['bytes_total']:,} bytes in {step['messages_total']:,} messages"
        rows.append((step["name"], moved, "#cfe3f5" if step["local"] else "#f7d9a8"))
    rows.append((f"output: {_parts(after, ndim)} parts", "", "#eeeeee"))
    drawn = [_text(10, 20, title, 'font-weight="bold"')]
    for i, (name, moved, colour) in enumerate(rows):
        y = 34 + 40 * i
        drawn.append(f'<rect x="10" y="{y}" width="520" height="28" rx="4" fill="{colour}" stroke="#888"/>')
        drawn.append(_text(20, y + 18, name))
        drawn.append(_text(520, y + 18, moved, 'text-anchor="end"'))
        if i:
            drawn.append(f'<path d="M270 {y - 12} V{y - 2} m-4 -5 l4 5 l4 -5" fill="none" stroke="#555"/>')
    return _picture(540, 40 + 40 * len(rows), drawn)


def timeline(plan: Plan) -> Picture:
    """What every rank did in the last call of a plan, over time. Collective; all ranks get the picture."""
    import json

    parts = plan.comm.all_gather(json.dumps(plan.events).encode())
    ranks = [json.loads(part) for part in parts]
    total = max((event["end_ms"] for events in ranks for event in events), default=1.0) or 1.0
    left, width, drawn = 60.0, 700.0, []
    for rank, events in enumerate(ranks):
        y = 16 + 30 * rank
        drawn.append(_text(6, y + 15, f"rank {rank}"))
        for event in events:
            x, span = left + width * event["start_ms"] / total, width * (event["end_ms"] - event["start_ms"]) / total
            label = f"{event['kind']} {event['name']}: {event['start_ms']:.3f} to {event['end_ms']:.3f} ms"
            drawn.append(
                f'<rect x="{x:.2f}" y="{y}" width="{max(span, 0.3):.2f}" height="22" fill="{_COLOURS.get(event["kind"], "#888")}">'
                f"<title>{escape(label)}</title></rect>"
            )
    bottom = 16 + 30 * len(ranks) + 16
    drawn += [_text(left, bottom, "0"), _text(left + width, bottom, f"{total:.3f} ms", 'text-anchor="end"')]
    for i, (kind, colour) in enumerate(_COLOURS.items()):
        x = left + 100 * i
        drawn.append(f'<rect x="{x:g}" y="{bottom + 10}" width="12" height="12" fill="{colour}"/>')
        drawn.append(_text(x + 16, bottom + 20, kind))
    return _picture(left + width + 20, bottom + 34, drawn)
