"""Layouts: which rank has which part of an array."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Slices = tuple[slice, ...]


class Layout:
    """How an array is distributed over ranks.

    Made by `Layout.slabs`, `pencils`, `bricks`, `boxes`, `local` and `unconstrained`, or by the words of the command:
    `Layout("slabs:0")`, `Layout("pencils:2")`, `Layout("bricks")`, `Layout("best")`. `order` is the order of the axes in
    memory: "C", "F" or a list, slowest first. The layouts of a plan know their boxes.
    """

    def __init__(
        self, kind: str | Layout = "slabs:0", *, grid: Sequence[int] | None = None, order: str | Sequence[int] = "C"
    ) -> None:
        if isinstance(kind, Layout):
            self.__dict__.update(kind.__dict__)
            return
        word, _, axis = kind.partition(":")
        if word not in ("slabs", "pencils", "bricks", "best", "boxes", "local"):
            raise ValueError(f"a layout is slabs:AXIS, pencils:AXIS, bricks or best, got {kind!r}")
        self.kind = word
        self.axis = int(axis) if axis else 0
        self.grid = None if grid is None else tuple(grid)
        self.order = order if isinstance(order, str) else tuple(order)
        self._boxes: tuple[Slices, ...] | None = None
        self.shape: tuple[int, ...] | None = None

    @classmethod
    def slabs(cls, axis: int = 0, **options: Any) -> Layout:
        """Only `axis` is split."""
        return cls(f"slabs:{axis}", **options)

    @classmethod
    def pencils(cls, axis: int, **options: Any) -> Layout:
        """`axis` is whole, the others are split."""
        return cls(f"pencils:{axis}", **options)

    @classmethod
    def bricks(cls, **options: Any) -> Layout:
        """Any axis may be split."""
        return cls("bricks", **options)

    @classmethod
    def unconstrained(cls) -> Layout:
        """Where the transform ends at the least cost; for outputs."""
        return cls("best")

    @classmethod
    def of_boxes(cls, boxes: Sequence[Slices], *, order: str | Sequence[int] = "C") -> Layout:
        """A box for each rank, as tuples of slices."""
        layout = cls("boxes", order=order)
        layout._boxes = tuple(tuple(box) for box in boxes)
        return layout

    @classmethod
    def local(cls, box: Slices, *, order: str | Sequence[int] = "C") -> Layout:
        """The box of this rank; a plan asks the other ranks for theirs."""
        layout = cls("local", order=order)
        layout._boxes = (tuple(box),)
        return layout

    @classmethod
    def _of_plan(cls, info: dict[str, Any], ndim: int) -> Layout:
        skip = 3 - ndim
        layout = cls("boxes", order=tuple(axis - skip for axis in info["order"] if axis >= skip))
        layout.shape = tuple(info["shape"][skip:])
        none = tuple(slice(0, 0) for _ in range(ndim))
        pairs = [list(zip(box["lo"], box["hi"])) for box in info["boxes"]]
        layout._boxes = tuple(
            tuple(slice(lo, hi) for lo, hi in box[skip:]) if all(lo < hi for lo, hi in box) else none for box in pairs
        )
        return layout

    @property
    def boxes(self) -> tuple[Slices, ...]:
        """The box of each rank, as slices of the global array."""
        if self._boxes is None:
            raise ValueError(f"only the layouts of a plan have boxes; this is {self!r}")
        return self._boxes

    def axes_in_memory(self, ndim: int) -> tuple[int, ...]:
        """The axes, slowest first."""
        if isinstance(self.order, tuple):
            return self.order
        if self.order not in ("C", "F"):
            raise ValueError(f"order is 'C', 'F' or a list of axes, got {self.order!r}")
        return tuple(range(ndim)) if self.order == "C" else tuple(reversed(range(ndim)))

    def _json(self, ndim: int) -> dict[str, Any]:
        skip = 3 - ndim
        order = [*range(skip), *(axis + skip for axis in self.axes_in_memory(ndim))]
        grid = None if self.grid is None else [1] * skip + [int(g) for g in self.grid]
        axis = (self.axis + ndim if self.axis < 0 else self.axis) + skip
        boxes = [
            {"lo": [0] * skip + [int(s.start or 0) for s in box], "hi": [1] * skip + [int(s.stop) for s in box]}
            for box in self._boxes or ()
        ]
        split: Any = {
            "slabs": {"Slabs": axis},
            "pencils": {"Pencils": axis},
            "bricks": "Bricks",
            "best": "Best",
            "boxes": {"Boxes": boxes},
            "local": {"Mine": boxes[0] if boxes else None},
        }[self.kind]
        return {"split": split, "grid": grid, "order": order}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Layout) and self.__dict__ == other.__dict__

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        if self._boxes is not None:
            text = "; ".join(", ".join(f"{s.start}:{s.stop}" for s in box) for box in self._boxes)
            return f"<ferrier.Layout: {len(self._boxes)} boxes [{text}], order {self.order}>"
        word = self.kind if self.kind in ("bricks", "best") else f"{self.kind}:{self.axis}"
        extra = "".join(f", {name}={value!r}" for name, value in (("grid", self.grid), ("order", self.order)) if value not in (None, "C"))
        return f"ferrier.Layout({word!r}{extra})"
