"""Problems and plans: transforms of distributed arrays."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from ferrier import _ferrier, _gpu
from ferrier._array import DistributedArray, distributed
from ferrier._ferrier import Comm
from ferrier._layout import Layout, Slices
from ferrier._pictures import Picture, steps_picture

_KINDS = {"none": "none", "c2c": "complex", "r2c": "real"}
_KINDS |= {f"{name}{number}": f"{name}{number}" for name in ("dct", "dst") for number in (1, 2, 3, 4)}
_SCALES = {
    "backward": ("none", "full"),
    "forward": ("full", "none"),
    "ortho": ("symmetric", "symmetric"),
    "none": ("none", "none"),
}
_CHOICES = {
    "exchange", "codec", "compress", "kernel", "decomposition", "axes", "ranks", "grid", "fuse", "stream", "staging",
    "threads", "overlap", "progress", "block", "memory",
}
# Names of choices that are stored under older ones.
_STORED = {"decomposition": "path", "staging": "pockets"}


class Problem:
    """A transform, and how its input and output are distributed.

    shape: one to three lengths. kind: "c2c", "r2c" (the last axis is halved) or one for each axis ("dct2", "c2c",
    "none", ...). axes: the axes to transform, by default all. input, output: layouts. norm: "backward", "forward",
    "ortho" as in numpy, or "none". batch: arrays that are transformed together, along a first axis of their own. keep:
    for each axis `None`, a number of lowest modes, or a range (first, last). support: for each axis `None` or the range
    of points that may be non-zero. tolerance: the allowed relative error; messages are then encoded. operators: plans
    can apply operators. reproducible: bits do not depend on the number of ranks. sign: that of the exponent of `forward`, -1
    or 1. real_input: a complex transform takes real values. complex_values: cosine and sine transforms act on complex ones. input_strides, output_strides: where the elements of this rank's
    arrays lie, as `array.strides` in elements of a part of a larger array: ghost cells, padded rows; the batch's stride first
    if there is one.
    """

    def __init__(
        self,
        shape: int | Sequence[int],
        kind: str | Sequence[str] = "c2c",
        *,
        axes: Sequence[int] | None = None,
        halved: int = -1,
        input: Layout | str = "slabs:0",
        output: Layout | str = "slabs:0",
        norm: str = "backward",
        batch: int = 1,
        keep: Sequence[int | tuple[int, int] | None] | None = None,
        support: Sequence[tuple[int, int] | None] | None = None,
        sphere: float | Sequence[float] | None = None,
        tolerance: float | None = None,
        operators: bool = False,
        reproducible: bool = False,
        sign: int = -1,
        real_input: bool = False,
        complex_values: bool = False,
        input_strides: Sequence[int] | None = None,
        output_strides: Sequence[int] | None = None,
    ) -> None:
        self.shape = (shape,) if isinstance(shape, int) else tuple(int(n) for n in shape)
        if not 1 <= len(self.shape) <= 3:
            raise ValueError(f"shape has one to three axes, got {self.shape}")
        if norm not in _SCALES:
            raise ValueError(f"norm is one of {', '.join(_SCALES)}, got {norm!r}")
        ndim = self.ndim = len(self.shape)
        skip = 3 - ndim
        self.input, self.output = Layout(input), Layout(output)
        self.kind, self.norm, self.batch = kind, norm, batch
        mixed = None
        transformed = [_axis(axis, ndim) for axis in axes] if axes is not None else list(range(ndim))
        if not isinstance(kind, str):
            if len(kind) != ndim:
                raise ValueError(f"kind has {len(kind)} entries for {ndim} axes")
            mixed = ["none"] * skip + [_kind(word) for word in kind]
            transformed = [axis for axis, word in enumerate(kind) if word != "none"]
        elif kind not in ("c2c", "r2c"):
            mixed = ["none"] * skip + [_kind(kind) if axis in transformed else "none" for axis in range(ndim)]
        real = kind == "r2c" or (mixed is not None and "real" in mixed)
        forward, backward = _SCALES[norm]
        self._json = {
            "shape": [1] * skip + list(self.shape),
            "real": real,
            "halved": mixed.index("real") if mixed is not None and real else _axis(halved, ndim) + skip,
            "axes": [axis + skip for axis in transformed],
            "mixed": mixed,
            "complex_values": complex_values,
            "keep": ["all"] * skip + [_keep(part) for part in keep or [None] * ndim],
            "filled": [None] * skip + [None if part is None else list(part) for part in support or [None] * ndim],
            "sphere": None if sphere is None else [float(r) for r in np.broadcast_to(sphere, 3)],
            "input": self.input._json(ndim),
            "output": self.output._json(ndim),
            "scale_forward": forward,
            "scale_backward": backward,
            "batch": batch,
            "reproducible": reproducible,
            "operators": operators,
            "long": False,
            "tolerance": tolerance,
        }
        if sign not in (-1, 1):
            raise ValueError(f"sign is -1 or 1, got {sign}")
        if sign == 1:
            self._json["sign"] = "positive"
        if real_input:
            self._json["real_input"] = True
        self._strides = [None if strides is None else tuple(map(int, strides)) for strides in (input_strides, output_strides)]
        for name, strides in zip(("input_strides", "output_strides"), self._strides):
            if strides is not None:
                self._json[name] = {"Local": _strides(name, strides, ndim, batch)}

    def __repr__(self) -> str:
        kind = self.kind if isinstance(self.kind, str) else ",".join(self.kind)
        size = "x".join(map(str, self.shape))
        return f"<ferrier.Problem: {kind} {size}, batch {self.batch}, {self.input!r} -> {self.output!r}>"


def _axis(axis: int, ndim: int) -> int:
    if not -ndim <= axis < ndim:
        raise ValueError(f"axis {axis} is out of bounds for {ndim} axes")
    return axis % ndim


def _strides(name: str, strides: Sequence[int], ndim: int, batch: int) -> dict[str, Any]:
    lead = 0 if batch == 1 else 1
    if len(strides) != ndim + lead or min(strides) < 0:
        raise ValueError(f"{name}: expected {ndim + lead} strides that are not negative, got {tuple(strides)}")
    return {"offset": 0, "axes": [0] * (3 - ndim) + list(strides[lead:]), "batch": strides[0] if lead else None}


def _kind(word: str) -> str:
    if word not in _KINDS:
        raise ValueError(f"kind is one of {', '.join(_KINDS)}, got {word!r}")
    return _KINDS[word]


def _keep(part: int | tuple[int, int] | None) -> Any:
    if part is None:
        return "all"
    return {"lowest": part} if isinstance(part, int) else {"range": list(part)}


def as_comm(comm: Any, threads: int | None = None) -> Comm:
    """A communicator of Ferrier's: one already, mpi4py's, or `None` for this process alone."""
    if comm is None:
        return Comm.one_rank(threads)
    if not isinstance(comm, Comm):
        if not hasattr(comm, "py2f"):
            raise TypeError(f"comm is a ferrier.Comm, a communicator of mpi4py or None, got {type(comm).__name__}")
        comm = Comm.from_fortran(comm.py2f())
    return comm if threads is None else comm.with_threads(threads)


Result = TypeVar("Result")


def run(ranks: int, function: Callable[[Comm], Result], *, threads: int = 1, nodes: int = 1) -> list[Result]:
    """Runs `function(comm)` on so many threads of this process, which are ranks: distributed programs in a notebook. Their
    results, in order of rank. `nodes` pretends that they are on several nodes."""
    return _ferrier.run_ranks(ranks, function, threads, nodes)


class _Memory:
    """What numpy needs to see an array of a plan's."""

    def __init__(self, memory: _ferrier.Memory, dtype: np.dtype[Any], shape: tuple[int, ...], ndim: int) -> None:
        self.memory = memory
        address, strides = memory.view(dtype.kind == "f")
        # Axes before those of the problem have the length 1; that of the batch is there if there is one.
        lead = strides[:1] if len(shape) > ndim else ()
        self.__array_interface__ = {
            "version": 3,
            "data": (address, False),
            "typestr": dtype.str,
            "shape": shape,
            "strides": (*lead, *strides[4 - ndim :]),
        }


class Plan:
    """An executable transform: made once, called often. Making one and its calls are collective.

    problem: a `Problem`, or a shape. comm: a `Comm`, a communicator of mpi4py, or `None` for this process. dtype: any type
    of the wanted precision. threads: of each rank. effort: "estimate", "measure", "online", or seconds for a search.
    wisdom: a file, or False for none. device: "cpu", or a GPU ("cuda", "cuda:1"): arrays are then those of CuPy, PyTorch, JAX or
    of any library that speaks DLPack, and calls enqueue their work on the stream of the array's library. All other words are
    choices of the planner's, such as exchange="ring" or grid=(2, 2); what is not chosen, the planner decides.

    A context: `with ferrier.Plan(...) as plan` gives its memory and threads back at the end.
    """

    def __init__(
        self,
        problem: Problem | Sequence[int],
        comm: Any = None,
        *,
        dtype: DTypeLike = np.float64,
        threads: int | None = None,
        effort: str | float = "estimate",
        wisdom: str | os.PathLike[str] | bool = True,
        device: str = "cpu",
        **choice: Any,
    ) -> None:
        self.problem = problem if isinstance(problem, Problem) else Problem(problem)
        self.comm = as_comm(comm, threads)
        kind = np.dtype(dtype)
        if kind.char not in "fdFD":
            raise TypeError(f"dtype is float32, float64, complex64 or complex128, got {kind}")
        double = kind.char in "dD"
        gpu = self.device = _gpu_number(device, self.comm)
        draft = _ferrier.Draft(
            self.comm, json.dumps(self.problem._json), _choice(choice), double, _effort(effort), _wisdom(wisdom), gpu
        )
        self._drafted: dict[str, Any] = json.loads(draft.info())
        self._plan = draft.build()
        info = self._info = json.loads(self._plan.info())
        self._skip = 3 - self.problem.ndim
        types = [np.dtype(np.float64 if double else np.float32), np.dtype(np.complex128 if double else np.complex64)]
        self.input_dtype, self.output_dtype = (types[0 if real else 1] for real in info["real"])
        self.input_layout, self.output_layout = (
            Layout._of_plan(layout, self.problem.ndim) for layout in info["layouts"]
        )

    @property
    def input_slice(self) -> Slices:
        """This rank's part of the input of `forward`."""
        return self.input_layout.boxes[self.comm.rank]

    @property
    def output_slice(self) -> Slices:
        """This rank's part of the output of `forward`."""
        return self.output_layout.boxes[self.comm.rank]

    @property
    def notes(self) -> list[str]:
        """Substitutions that Ferrier made, and why."""
        return list(self._info["notes"])

    @property
    def memory(self) -> dict[str, int]:
        """Bytes that the plan takes on this rank."""
        return {**self._info["memory"], "total": self._info["memory_total"]}

    @property
    def recipe(self) -> str:
        """The steps."""
        return self._info["recipe"]

    @property
    def predicted(self) -> dict[str, Any] | None:
        """The times of `forward` that the cost model predicts: seconds, and those of each step."""
        return self._drafted["predicted"][0]

    @property
    def rejected(self) -> list[tuple[str, float]]:
        """Recipes that were rejected, and their predicted times relative to this one's."""
        return [(text, ratio) for text, ratio in self._drafted["rejected"]]

    @property
    def is_tuning(self) -> bool:
        """Does it still look for a faster choice (effort "online")?"""
        return json.loads(self._plan.info())["tuning"]

    @property
    def certificate(self) -> dict[str, float] | None:
        """The error bound of the last call, relative to the norm of the result; `None` without a tolerance or codec."""
        values = self._plan.certificate()
        return None if values is None else dict(zip(("loss", "rounding_typical", "rounding_worst", "tolerance", "bound"), values))

    @property
    def wire_bytes(self) -> int:
        """The bytes that this rank sent in the last call."""
        return self._plan.wire_bytes()

    @property
    def events(self) -> list[dict[str, Any]]:
        """What the last call did on this rank, and when."""
        return json.loads(self._plan.events())

    def _shape(self, layout: Layout) -> tuple[int, ...]:
        lead = () if self.problem.batch == 1 else (self.problem.batch,)
        return lead + tuple(s.stop - s.start for s in layout.boxes[self.comm.rank])

    def _make(self, what: str, output: bool, memory: _ferrier.Memory | None = None) -> Any:
        memory = memory or self._plan.make(what)
        layout, dtype = (self.output_layout, self.output_dtype) if output else (self.input_layout, self.input_dtype)
        if self.device is not None:
            shape = self._shape(layout)
            return _gpu.GpuArray(memory, self.device, shape, _gpu.dense(shape, self._order(layout), dtype.itemsize), dtype, 0)
        array = np.asarray(_Memory(memory, dtype, self._shape(layout), self.problem.ndim))
        return distributed(array, self.comm, layout, self.problem.batch)

    def _order(self, layout: Layout) -> list[int]:
        """The axes of an array in the order of memory, that of the batch first."""
        lead = 0 if self.problem.batch == 1 else 1
        return [*range(lead), *(axis + lead for axis in layout.axes_in_memory(self.problem.ndim))]

    def make_input(self) -> Any:
        """An array for the input of `forward`, not set, in memory that the ranks of a node share; on a GPU a `GpuArray`."""
        return self._make("input", False)

    def make_output(self) -> Any:
        """An array for the output of `forward`."""
        return self._make("output", True)

    def make_in_place(self) -> tuple[DistributedArray, DistributedArray]:
        """One array, seen as input and as output, for `forward_in_place` and `backward_in_place`. Rows of a real transform
        are padded as FFTW pads them."""
        if self.device is not None:
            raise _ferrier.FerrierError("on a GPU a transform in place is forward(x, out=x)")
        memory = self._plan.make("in_place")
        return self._make("", False, memory), self._make("", True, memory)

    def _checked(self, array: ArrayLike, output: bool, name: str) -> NDArray[Any]:
        """An array of the right shape and type whose axes are in the order of memory, without a copy if it is."""
        layout, dtype = (self.output_layout, self.output_dtype) if output else (self.input_layout, self.input_dtype)
        given = np.asarray(array)
        self._check_shape(given.shape, layout, name)
        if given.dtype.kind == "c" and dtype.kind == "f":
            raise TypeError(f"{name} is real, got {given.dtype}")
        return given.astype(dtype, copy=False).transpose(self._order(layout))

    def _check_shape(self, shape: tuple[int, ...], layout: Layout, name: str) -> None:
        expected = self._shape(layout)
        if shape != expected:
            self.comm.fail(f"{name} has the wrong shape on rank {self.comm.rank}")
            raise _ferrier.FerrierError(
                f"{name}: expected the shape {expected} (this rank's box is {_text(layout.boxes[self.comm.rank])}), got {shape}"
            )

    def _fits(self, array: NDArray[Any], output: bool) -> bool:
        """Do its elements lie as those of the plan's arrays? The axes are in the order of memory."""
        strides = self.problem._strides[output]
        if strides is None:
            return array.flags.c_contiguous
        expected = [strides[axis] for axis in self._order(self.output_layout if output else self.input_layout)]
        pairs = zip(array.shape, array.strides, expected)
        return array.flags.aligned and all(n == 1 or step == want * array.itemsize for n, step, want in pairs)

    def _out(self, out: NDArray[Any], output: bool) -> NDArray[Any]:
        array = self._checked(out, output, "out")
        if not self._fits(array, output) or not np.shares_memory(array, out) and array.size:
            layout, strides = self.output_layout if output else self.input_layout, self.problem._strides[output]
            places = f"the axes in the order {layout.axes_in_memory(self.problem.ndim)} in memory, without gaps"
            raise _ferrier.FerrierError(
                f"out: expected an array of {self.output_dtype if output else self.input_dtype} with"
                f" {places if strides is None else f'the strides {strides} (in elements)'}"
            )
        return array

    def _source(self, x: ArrayLike, output: bool) -> NDArray[Any]:
        """The array that is transformed, copied only where its elements lie elsewhere than the plan expects them."""
        array = self._checked(x, output, "x")
        if self._fits(array, output):
            return array
        strides = self.problem._strides[output]
        if strides is None:
            return np.ascontiguousarray(array)
        steps = [strides[axis] for axis in self._order(self.output_layout if output else self.input_layout)]
        room = np.zeros(1 + sum((n - 1) * step for n, step in zip(array.shape, steps)) if array.size else 0, array.dtype)
        copy = np.lib.stride_tricks.as_strided(room, array.shape, [step * array.itemsize for step in steps])
        copy[...] = array
        return copy

    def _call(
        self, kind: str, x: Any, out: Any, outputs: tuple[bool, bool], scale: float, operator: Any = None, stream: Any = None
    ) -> Any:
        if self.device is not None:
            return self._call_gpu(kind, x, out, outputs, scale, operator, _gpu.as_stream(stream))
        if stream is not None:
            raise TypeError("stream: this plan is not on a GPU")
        source = self._source(x, outputs[0])
        if out is None:
            out = self.make_output() if outputs[1] else self.make_input()
        target = self._out(out, outputs[1])
        same = source.size > 0 and source.ctypes.data == target.ctypes.data
        self._plan.call(kind, None if same else source, target, scale, operator)
        return out

    def _call_gpu(
        self, kind: str, x: Any, out: Any, outputs: tuple[bool, bool], scale: float, operator: Any, stream: int | None
    ) -> Any:
        view = self._view(x, outputs[0], "x", stream)
        layout, dtype = (self.output_layout, self.output_dtype) if outputs[1] else (self.input_layout, self.input_dtype)
        made = out
        if made is None:
            made = _gpu.empty(view, self._shape(layout), self._order(layout), dtype)
        if made is None:
            made = self.make_output() if outputs[1] else self.make_input()
            made._stream = view.stream
        elif _gpu.library(made) == "jax":
            raise TypeError("arrays of JAX cannot be written to: leave out `out`")
        target = self._view(made, outputs[1], "out", view.stream)

        def span(view: _gpu.View) -> tuple[int, int]:
            return view.address, int(np.prod(view.shape)) * (2 if view.dtype.kind == "c" else 1)

        source = None if view.address == target.address else span(view)
        self._plan.call_gpu(kind, source, span(target), scale, operator, view.stream)
        return _gpu.handed(view, made) if out is None and isinstance(made, _gpu.GpuArray) else made

    def _view(self, array: Any, output: bool, name: str, stream: int | None) -> _gpu.View:
        """An array of a GPU, checked: dense, with its axes in the order of the layout."""
        if not _gpu.is_on_gpu(array):
            raise TypeError(f"{name}: this plan is on GPU {self.device}, the array is not: {type(array).__name__}")
        layout, dtype = (self.output_layout, self.output_dtype) if output else (self.input_layout, self.input_dtype)
        view = _gpu.View(array, stream)
        self._check_shape(view.shape, layout, name)
        wanted = _gpu.dense(view.shape, self._order(layout), dtype.itemsize)
        fits = all(n == 1 or step == want for n, step, want in zip(view.shape, view.strides, wanted))
        if view.device != self.device or view.dtype != dtype or not fits:
            raise _ferrier.FerrierError(
                f"{name}: expected an array of {dtype} on GPU {self.device} with the strides {wanted} (bytes), got {view.dtype} on GPU"
                f" {view.device} with the strides {view.strides}"
            )
        return view

    def forward(self, x: ArrayLike, out: Any = None, *, scale: float = 1.0, stream: Any = None) -> Any:
        """Transforms this rank's part `x` of an array. The result is `out`, or a new `DistributedArray`; with `out` the same array
        as `x`, in place. On a GPU it is an array of the library of `x`, and the work is enqueued on `stream`, by default that of
        the library."""
        return self._call("forward", x, out, (False, True), scale, None, stream)

    def backward(self, x: ArrayLike, out: Any = None, *, scale: float = 1.0, stream: Any = None) -> Any:
        """Transforms back."""
        return self._call("backward", x, out, (True, False), scale, None, stream)

    def synchronize(self) -> None:
        """Returns when all work that calls have enqueued on a GPU is done."""
        self._plan.synchronize()

    def apply(
        self,
        x: ArrayLike,
        operator: str,
        *values: float,
        lengths: Sequence[float] | None = None,
        out: Any = None,
        scale: float = 1.0,
        stream: Any = None,
    ) -> Any:
        """Forward, an operator on every mode, and backward, in as few passes as possible; the problem needs
        `operators=True`. Operators: laplacian, inverse_laplacian, derivative (axis), gaussian (width), low_pass (wave
        number), helmholtz (constant), two_thirds, shift (a distance for each axis). `lengths` are those of the domain, by
        default 2 pi."""
        if operator not in _OPERATORS:
            raise ValueError(f"operator is one of {', '.join(_OPERATORS)}, got {operator!r}")
        if operator == "shift":
            values = (0.0,) * self._skip + values
        elif operator == "derivative":
            values = tuple(_axis(int(axis), self.problem.ndim) + self._skip for axis in values)
        if len(values) != (3 if operator == "shift" else _OPERATORS[operator]):
            raise ValueError(f"{operator} takes {_OPERATORS[operator]} values")
        sizes = [1.0] * self._skip + [float(n) for n in lengths or [2 * np.pi] * self.problem.ndim]
        return self._call("apply", x, out, (False, False), scale, (operator, sizes, [float(v) for v in values]), stream)

    def forward_in_place(self, array: tuple[DistributedArray, DistributedArray], *, scale: float = 1.0) -> DistributedArray:
        """Transforms an array of `make_in_place`; the result is its second view."""
        return self._in_place("forward", array, scale)[1]

    def backward_in_place(self, array: tuple[DistributedArray, DistributedArray], *, scale: float = 1.0) -> DistributedArray:
        """Transforms an array of `make_in_place` back; the result is its first view."""
        return self._in_place("backward", array, scale)[0]

    def _in_place(self, kind: str, array: tuple[DistributedArray, DistributedArray], scale: float) -> Any:
        holder: Any = array[1]
        while not isinstance(holder, _Memory):
            holder = getattr(holder, "base", None)
            if holder is None:
                raise TypeError("in place: expected the pair of arrays that make_in_place returned")
        self._plan.call_in_place(kind, holder.memory, scale)
        return array

    def show(self) -> Picture:
        """The steps as a picture, which notebooks show."""
        return steps_picture(self.recipe.splitlines()[0], self._info["traffic"], self.input_layout, self.output_layout)

    def close(self) -> None:
        """Gives memory and threads back; later calls raise an error."""
        self._plan.close()

    def __enter__(self) -> Plan:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<ferrier.Plan on {self.comm!r}\n{self.recipe}>"


def _gpu_number(device: str, comm: Comm) -> int | None:
    """The number of a GPU. "cuda": the ranks of a node share out all of them."""
    name, _, number = str(device).partition(":")
    if name == "cpu" and not number:
        return None
    if name != "cuda" or (number and not number.isdecimal()):
        raise ValueError(f"device is 'cpu', 'cuda' or 'cuda:NUMBER', got {device!r}")
    if number:
        return int(number)
    before = sum(node == comm.nodes[comm.rank] for node in comm.nodes[: comm.rank])
    return before % max(_ferrier.gpu_count(), 1)


_OPERATORS = {
    "laplacian": 0,
    "inverse_laplacian": 0,
    "derivative": 1,
    "gaussian": 1,
    "low_pass": 1,
    "helmholtz": 1,
    "two_thirds": 0,
    "shift": 3,
}


def _text(box: Slices) -> str:
    return "[" + ", ".join(f"{s.start}:{s.stop}" for s in box) + "]"


def _choice(choice: Mapping[str, Any]) -> str:
    unknown = set(choice) - _CHOICES
    if unknown:
        raise TypeError(f"unknown choice {', '.join(sorted(unknown))}; choices are {', '.join(sorted(_CHOICES))}")
    return json.dumps({_STORED.get(name, name): value for name, value in choice.items() if value is not None})


def _effort(effort: str | float) -> tuple[str, float]:
    if isinstance(effort, str):
        if effort not in ("estimate", "measure", "online"):
            raise ValueError(f"effort is 'estimate', 'measure', 'online' or a number of seconds, got {effort!r}")
        return effort, 0.0
    return "patient", float(effort)


def _wisdom(wisdom: str | os.PathLike[str] | bool) -> str | None:
    if isinstance(wisdom, bool):
        return None if wisdom else "off"
    return os.fspath(wisdom)


def redistributed(array: DistributedArray, layout: Layout) -> DistributedArray:
    """An array in another layout; elements may be of any type of 1 to 32 bytes."""
    ndim, batch, dtype = len(array.global_shape), array.batch, array.dtype
    problem = Problem(array.global_shape, ["none"] * ndim, input=array.layout, output=layout, batch=batch)
    lead = [] if batch == 1 else [0]

    def in_memory(layout: Layout) -> list[int]:
        return [*lead, *(axis + len(lead) for axis in layout.axes_in_memory(ndim))]

    part = np.ascontiguousarray(np.asarray(array).transpose(in_memory(array.layout)))
    moved, info = _ferrier.redistribute(
        array.comm, json.dumps(problem._json), dtype.itemsize, part.reshape(-1).view(np.uint8)
    )
    place = Layout._of_plan(json.loads(info), ndim)
    shape = [s.stop - s.start for s in place.boxes[array.comm.rank]]
    shape = ([batch] if lead else []) + shape
    order = in_memory(place)
    result = moved.view(dtype).reshape([shape[axis] for axis in order]).transpose(np.argsort(order))
    return distributed(result, array.comm, place, batch)
