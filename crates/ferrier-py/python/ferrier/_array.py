"""Distributed arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ferrier._layout import Layout, Slices

if TYPE_CHECKING:
    from ferrier._ferrier import Comm


class DistributedArray(np.ndarray):
    """This rank's part of a distributed array: an array of numpy's that knows its place.

    Results of the same shape (sums, `np.exp`, copies) know theirs too; parts (`array[0]`) do not.
    """

    _place: tuple[Comm, Layout, int] | None

    def __array_finalize__(self, obj: Any) -> None:
        place = getattr(obj, "_place", None)
        self._place = place if place is not None and getattr(obj, "shape", None) == self.shape else None

    def _at(self) -> tuple[Comm, Layout, int]:
        if self._place is None:
            raise ValueError("this array is a part of a distributed array, and has no place of its own")
        return self._place

    @property
    def comm(self) -> Comm:
        """The ranks that have the other parts."""
        return self._at()[0]

    @property
    def layout(self) -> Layout:
        """Which rank has which part."""
        return self._at()[1]

    @property
    def batch(self) -> int:
        """The number of arrays; more than one are along the first axis."""
        return self._at()[2]

    @property
    def global_shape(self) -> tuple[int, ...]:
        """The shape of the whole array, without the batch."""
        shape = self.layout.shape
        assert shape is not None
        return shape

    @property
    def local_slice(self) -> Slices:
        """Where this part lies in the whole array: `whole[array.local_slice]`."""
        return self.layout.boxes[self.comm.rank]

    def gather(self, root: int | None = None) -> np.ndarray | None:
        """The whole array, on all ranks or on rank `root` only (`None` on the others). Collective."""
        if root is not None:
            whole = tuple(slice(0, n) for n in self.global_shape)
            none = tuple(slice(0, 0) for _ in self.global_shape)
            boxes = [whole if rank == root else none for rank in range(self.comm.size)]
            gathered = self.redistribute(Layout.of_boxes(boxes))
            return np.asarray(gathered) if self.comm.rank == root else None
        lead = () if self.batch == 1 else (self.batch,)
        result = np.empty(lead + self.global_shape, self.dtype)
        parts = self.comm.all_gather(np.ascontiguousarray(self).tobytes())
        for box, part in zip(self.layout.boxes, parts):
            index: Any = (..., *box)
            view = result[index]
            view[...] = np.frombuffer(part, self.dtype).reshape(view.shape)
        return result

    def redistribute(self, layout: Layout | str) -> DistributedArray:
        """The same array in another layout. Collective."""
        from ferrier._plan import redistributed

        return redistributed(self, Layout(layout))


def distributed(array: np.ndarray, comm: Comm, layout: Layout, batch: int) -> DistributedArray:
    """An array with its place."""
    view = array.view(DistributedArray)
    view._place = (comm, layout, batch)
    return view
