"""`PFFT`: transforms of distributed arrays, as mpi4py-fft has them."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from ferrier import fft as _fft
from ferrier._layout import Layout, Slices
from ferrier._plan import Plan, Problem, as_comm
from ferrier.mpi4py_fft.distarray import DistArray, dist_array, exchanged, grid_of, moved
from ferrier.mpi4py_fft.pencil import Subcomm, boxes, divided


class _Transform:
    """`fft.forward` and `fft.backward`."""

    def __init__(self, pfft: PFFT, forward: bool) -> None:
        self._pfft, self._forward = pfft, forward
        self._arrays: dict[bool, DistArray] = {}

    def _array(self, output: bool) -> DistArray:
        if output not in self._arrays:
            self._arrays[output] = self._pfft._made(output)
            self._arrays[output][...] = 0
        return self._arrays[output]

    @property
    def input_array(self) -> DistArray:
        """The array that is transformed where none is passed."""
        return self._array(not self._forward)

    @property
    def output_array(self) -> DistArray:
        """The result where no array is passed for it."""
        return self._array(self._forward)

    def __call__(
        self, input_array: Any = None, output_array: Any = None, normalize: bool | None = None, **_: Any
    ) -> Any:
        source = self.input_array if input_array is None else input_array
        target = self.output_array if output_array is None else output_array
        scaled = self._forward if normalize is None else normalize
        scale = self._pfft._factor if scaled else 1.0
        return self._pfft._engine.call(self._forward, source, target, scale)


class _Planned:
    """By one plan: up to three axes."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan

    def call(self, forward: bool, source: Any, target: Any, scale: float) -> Any:
        call = self.plan.forward if forward else self.plan.backward
        return call(source, target, scale=scale)

    def close(self) -> None:
        self.plan.close()


class _InTurn:
    """Group by group: the axes of a group, which are whole, are transformed on each rank, then the array is redistributed."""

    def __init__(self, pfft: PFFT, stages: list[tuple[tuple[int, ...], str, Layout, Layout]]) -> None:
        self.pfft, self.stages = pfft, stages

    def call(self, forward: bool, source: Any, target: Any, scale: float) -> Any:
        pfft = self.pfft
        array = np.asarray(source)
        place = pfft._layouts[0 if forward else 1]
        for axes, kind, before, after in self.stages if forward else self.stages[::-1]:
            layouts = (before, after) if forward else (after, before)
            if grid_of(place) != grid_of(layouts[0]):
                array = moved(dist_array(array, pfft._comm, place, 0), layouts[0])
            lengths = [(before.shape or ())[axis] for axis in axes]
            array = _local(kind, array, axes, lengths, forward)
            place = layouts[1]
        np.multiply(array, scale, out=np.asarray(target))
        return target

    def close(self) -> None:
        pass


def _local(kind: str, array: np.ndarray, axes: tuple[int, ...], lengths: list[int], forward: bool) -> np.ndarray:
    """An unscaled transform of axes that are whole here."""
    norm = "backward" if forward else "forward"
    if kind == "c2c":
        return (_fft.fftn if forward else _fft.ifftn)(array, axes=axes, norm=norm)
    if kind == "r2c":
        return _fft.rfftn(array, axes=axes) if forward else _fft.irfftn(array, lengths, axes, norm=norm)
    name, number = kind[:3], int(kind[3:])
    function = getattr(_fft, f"{name}n" if forward else f"i{name}n")
    return function(array, type=number, axes=axes, norm=norm)


class PFFT:
    """Transforms of arrays that are distributed over the ranks of `comm`, as mpi4py-fft has them.

    `forward` and `backward` are called with an input and an output array. `transforms` gives groups of axes other transforms:
    `{(1, 2): (functools.partial(dctn, type=3), functools.partial(idctn, type=3))}`. The plan is Ferrier's: `fft.plan` tells its
    steps (`None` for more than three axes). `backend` is accepted and has no effect; other keywords are choices of Ferrier's
    planner.
    """

    def __init__(
        self,
        comm: Any,
        shape: Any = None,
        axes: Any = None,
        dtype: Any = float,
        grid: Sequence[int] | None = None,
        padding: Any = False,
        collapse: bool = False,
        backend: str = "ferrier",
        transforms: Any = None,
        darray: DistArray | None = None,
        slab: bool | int = False,
        **options: Any,
    ) -> None:
        if darray is not None:
            shape, dtype = darray.global_shape[darray.rank :], darray.dtype
        if shape is None:
            raise ValueError("PFFT needs a shape or a distributed array")
        shape = [int(n) for n in np.atleast_1d(shape)]
        ndim = len(shape)
        if axes is None and darray is not None:
            # The axis that is whole is transformed first.
            axes = [int(a) for a in np.roll(range(ndim), ndim - 1 - darray.alignment)]
        groups = _groups(axes, ndim)
        physical = _padded(shape, groups, padding)
        self.comm = comm.comm if isinstance(comm, Subcomm) else comm
        self._comm = as_comm(self.comm)
        before = self._grid(comm, groups, ndim, grid, slab, darray)
        if collapse:
            groups = _collapsed(groups, before)
        self.axes = tuple(groups)
        kinds = _kinds(groups, np.dtype(dtype), transforms or {}, ndim)
        real = [a for a in range(ndim) if kinds[a] == "r2c"]
        spectrum = [n // 2 + 1 if a in real else n for a, n in enumerate(shape)]
        self._shapes = [tuple(physical), tuple(spectrum)]
        start = Layout.of_boxes(boxes(physical, before)) if darray is None else darray.layout
        start.shape = tuple(physical)
        self._layouts, stages = self._stages(groups, kinds, start, shape)
        self._factor = 1.0 / float(np.prod([_size(kinds[a], physical[a]) for a in range(ndim)]))
        self._dtypes = [np.dtype(dtype), np.dtype(dtype)]
        if any(kind in ("c2c", "r2c") for kind in kinds):
            self._dtypes[1] = np.result_type(dtype, np.complex64)
        self.plan: Plan | None = None
        self._engine: _Planned | _InTurn
        if ndim <= 3:
            keep = [None if physical[a] == shape[a] else shape[a] for a in range(ndim)]
            problem = Problem(
                physical, kinds, input=self._layouts[0], output=self._layouts[1], norm="none", keep=keep,
                complex_values=self._dtypes[0].kind == "c" and "c2c" not in kinds,
            )  # fmt: skip
            self.plan = Plan(problem, self._comm, dtype=dtype, **options)
            self._engine = _Planned(self.plan)
        elif physical != shape:
            raise NotImplementedError(f"padding is for arrays of one to three axes, got {ndim}")
        else:
            self._engine = _InTurn(self, stages)
        self.forward = _Transform(self, True)
        self.backward = _Transform(self, False)

    def _grid(
        self, comm: Any, groups: list[tuple[int, ...]], ndim: int, grid: Any, slab: bool | int, darray: DistArray | None
    ) -> list[int]:
        """The parts of each axis before `forward`: the group that is transformed first is whole."""
        ranks, first = self._comm.size, groups[-1]
        if darray is not None:
            parts = darray.commsizes[darray.rank :]
        elif isinstance(comm, Subcomm):
            parts = list(comm.grid)
        elif ndim == 1:
            return [ranks]
        elif grid is not None:
            parts = divided(ranks, [*grid, *[1] * (ndim - len(grid))])
        elif slab is not False and slab is not None:
            wanted = [1] * ndim
            wanted[(first[-1] + 1) % ndim if slab is True else slab] = ranks
            parts = wanted
        else:
            parts = divided(ranks, [1 if a in first else 0 for a in range(ndim)])
        for axis in first:
            if ndim > 1 and parts[axis] != 1:
                raise ValueError(f"the grid {tuple(parts)} splits axis {axis}, which is transformed first")
        return parts

    def _stages(
        self, groups: list[tuple[int, ...]], kinds: list[str], start: Layout, shape: list[int]
    ) -> tuple[list[Layout], list[tuple[tuple[int, ...], str, Layout, Layout]]]:
        """Layouts before and after, and the transforms between them: axes, kind, and the layouts before and after each."""
        stages, place, whole = [], start, groups[-1][-1]
        for group in reversed(groups):
            if len(start.shape or ()) > 1 and any(grid_of(place)[axis] > 1 for axis in group):
                place = exchanged(place, whole, group[-1])
            if len(start.shape or ()) > 1 and any(grid_of(place)[axis] > 1 for axis in group):
                raise ValueError(f"the axes {group} are transformed together, but more than one of them is split")
            whole = group[-1]
            halved = [axis for axis in group if kinds[axis] == "r2c"]
            modes = list(place.shape or ())
            for axis in group:
                modes[axis] = shape[axis] // 2 + 1 if axis in halved else shape[axis]
            after = Layout.of_boxes(
                [tuple(slice(0, modes[a]) if a in group and grid_of(place)[a] == 1 else box[a] for a in range(len(modes))) for box in place.boxes]
            )
            after.shape = tuple(modes)
            stages.append((group, kinds[halved[0] if halved else group[-1]], place, after))
            place = after
        if len(shape) == 1:
            place = Layout.of_boxes(boxes(self._shapes[1], [self._comm.size]))
            place.shape = self._shapes[1]
        return [start, place], stages

    def _made(self, output: bool, rank: int = 0) -> DistArray:
        """An array for the output or the input of `forward`, not set."""
        layout, lead = self._layouts[output], (self.dimensions,) * rank
        if self.plan is not None and rank == 0:
            array = np.asarray(self.plan.make_output() if output else self.plan.make_input())
        else:
            array = np.empty(lead + self.shape(output), self._dtypes[output])
        return dist_array(array, self._comm, layout, rank, self.axes[0][-1] if output else self.axes[-1][-1])

    def global_shape(self, forward_output: bool = False) -> tuple[int, ...]:
        """The shape of the whole input, or output, of `forward`."""
        return self._shapes[bool(forward_output)]

    def shape(self, forward_output: bool = True) -> tuple[int, ...]:
        """The shape of this rank's part."""
        return tuple(s.stop - s.start for s in self.local_slice(forward_output))

    def local_slice(self, forward_output: bool = True) -> Slices:
        """This rank's part of the whole array."""
        return self._layouts[bool(forward_output)].boxes[self._comm.rank]

    def dtype(self, forward_output: bool = False) -> np.dtype[Any]:
        """The type of the elements."""
        return self._dtypes[bool(forward_output)]

    @property
    def dimensions(self) -> int:
        """The number of axes."""
        return len(self._shapes[0])

    def destroy(self) -> None:
        """Gives the memory of the plan back."""
        self._engine.close()


def _groups(axes: Any, ndim: int) -> list[tuple[int, ...]]:
    """Groups of axes that are transformed together, the first group last."""
    if axes is None:
        axes = range(ndim)
    listed = [axes] if isinstance(axes, (int, np.integer)) else list(axes)
    groups = [(axis,) if isinstance(axis, (int, np.integer)) else tuple(axis) for axis in listed]
    flat = [axis for group in groups for axis in group]
    if any(not -ndim <= axis < ndim for axis in flat) or len({axis % ndim for axis in flat}) != len(flat) or not all(groups):
        raise ValueError(f"axes: expected different axes of {ndim}, got {axes}")
    return [tuple(int(axis) % ndim for axis in group) for group in groups]


def _collapsed(groups: list[tuple[int, ...]], grid: list[int]) -> list[tuple[int, ...]]:
    """The groups that are whole at the start, as one."""
    last: list[int] = []
    others: list[tuple[int, ...]] = []
    for group in reversed(groups):
        if all(grid[axis] == 1 for axis in group):
            last = [*group, *last]
        else:
            others.insert(0, group)
    return [*others, tuple(last)]


def _padded(shape: list[int], groups: list[tuple[int, ...]], padding: Any) -> list[int]:
    """Points of each axis: `padding` is a factor for each axis, or one for all. Axes of a group of several are not padded."""
    if padding is False or padding is None:
        return list(shape)
    factors = np.broadcast_to(np.asarray(padding, float), len(shape))
    single = {group[0] for group in groups if len(group) == 1}
    return [int(np.floor(n * f)) if a in single and f > 1 + 1e-6 else n for a, (n, f) in enumerate(zip(shape, factors))]


def _kinds(groups: list[tuple[int, ...]], dtype: np.dtype[Any], transforms: Any, ndim: int) -> list[str]:
    """The kind of each axis. The first Fourier transform of real values halves the last axis of its group."""
    kinds, real = ["none"] * ndim, dtype.kind == "f"
    for group in reversed(groups):
        forward = transforms.get(tuple(group), (None,))[0]
        kind = _named(forward) if forward is not None else "r2c" if real else "c2c"
        for axis in group:
            kinds[axis] = "c2c" if kind == "r2c" else kind
        if kind == "r2c":
            kinds[group[-1]] = "r2c"
        if kind in ("r2c", "c2c"):
            real = False
    return kinds


def _named(function: Any) -> str:
    """The kind of a transform, by the name and the argument `type` of the function that does it."""
    number, inner = 2, function
    while isinstance(inner, functools.partial):
        number = inner.keywords.get("type", number)
        inner = inner.func
    kinds = {"fftn": "c2c", "rfftn": "r2c", "dctn": f"dct{number}", "dstn": f"dst{number}"}
    name = getattr(inner, "__name__", str(inner))
    if name not in kinds:
        raise ValueError(f"transforms are fftn, rfftn, dctn and dstn with their inverses, got {name}")
    return kinds[name]


def _size(kind: str, n: int) -> int:
    """The length of the Fourier transform that a transform amounts to."""
    if kind == "none":
        return 1
    if kind[:3] in ("dct", "dst"):
        return 2 * (n + {"dct1": -1, "dst1": 1}.get(kind, 0))
    return n
