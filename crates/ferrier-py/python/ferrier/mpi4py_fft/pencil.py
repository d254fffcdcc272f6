"""How ranks share out the axes of an array."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ferrier._layout import Slices
from ferrier._plan import as_comm


class Subcomm:
    """A grid of ranks: `Subcomm(comm, [0, 0, 1])`. Entries that are not positive are free and as equal as can be."""

    def __init__(self, comm: Any, dims: Sequence[int] | int | None = None) -> None:
        self.comm = comm
        dims = [0] * (2 if dims is None else dims) if dims is None or isinstance(dims, int) else list(dims)
        self.grid = tuple(divided(as_comm(comm).size, dims))

    def __len__(self) -> int:
        return len(self.grid)


def part(n: int, parts: int, index: int) -> slice:
    """The first ones get the elements that are left over."""
    size, rest = divmod(n, parts)
    start = index * size + min(index, rest)
    return slice(start, start + size + (index < rest))


def boxes(shape: Sequence[int], grid: Sequence[int]) -> list[Slices]:
    """The boxes of a grid of ranks, the last axis of the grid fastest."""
    return [tuple(part(n, g, i) for n, g, i in zip(shape, grid, index)) for index in np.ndindex(*grid)]


def divided(ranks: int, wanted: Sequence[int]) -> list[int]:
    """The grid of so many ranks; entries that are not positive are free and as equal as can be, largest first."""
    fixed = int(np.prod([g for g in wanted if g > 0], initial=1))
    free = [i for i, g in enumerate(wanted) if g <= 0]
    if ranks % fixed or (not free and fixed != ranks):
        raise ValueError(f"the grid {tuple(wanted)} does not fit {ranks} ranks")
    best: list[int] = []

    def search(left: int, count: int, largest: int, chosen: list[int]) -> None:
        nonlocal best
        if count == 0:
            if left == 1 and (not best or max(chosen) < max(best)):
                best = chosen
            return
        for size in range(min(left, largest), 0, -1):
            if left % size == 0:
                search(left // size, count - 1, size, [*chosen, size])

    search(ranks // fixed, len(free), ranks, [])
    grid = list(wanted)
    for i, size in zip(free, best):
        grid[i] = size
    return grid
