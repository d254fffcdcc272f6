"""Ferrier as a backend of scipy.fft."""

from __future__ import annotations

from typing import Any

from ferrier import fft


class Backend:
    """A backend of `scipy.fft`: `scipy.fft.set_global_backend(ferrier.backend)`, or for some lines
    `with scipy.fft.set_backend(ferrier.backend(workers=8)):`. What Ferrier does not do
    (longdouble, Hankel transforms) is left to scipy, arrays of other libraries to the next backend."""

    __ua_domain__ = "numpy.scipy.fft"

    def __init__(self, workers: int | None = None) -> None:
        self._workers = workers

    def __call__(self, *, workers: int | None = None) -> Backend:
        """The same backend with a number of threads for calls that do not name one."""
        return Backend(workers)

    def __repr__(self) -> str:
        return "ferrier.backend" if self._workers is None else f"ferrier.backend(workers={self._workers})"

    # All backends of Ferrier are one: skipping one skips all.
    def __eq__(self, other: object) -> bool:
        return isinstance(other, Backend)

    def __hash__(self) -> int:
        return hash(Backend)

    def __ua_function__(self, method: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        x = args[0] if args else kwargs.get("x")
        # Arrays of other libraries (on a GPU, distributed, lazy) and their plans are theirs.
        if kwargs.get("plan") is not None:
            return NotImplemented
        if hasattr(x, "__array_namespace__") and not hasattr(x, "__array_interface__"):
            return NotImplemented
        function = _FUNCTIONS.get(method.__name__)
        if function is None or getattr(getattr(x, "dtype", None), "char", "") in ("g", "G"):
            return _by_scipy(method, args, kwargs)
        if kwargs.get("workers") is None:
            kwargs = {**kwargs, "workers": self._default_workers()}
        return function(*args, **kwargs)

    def _default_workers(self) -> int:
        if self._workers is not None:
            return self._workers
        import scipy.fft  # type: ignore[import-untyped]

        return scipy.fft.get_workers()


def _by_scipy(method: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What only scipy does. `NotImplemented` would not do: a global backend has taken the place of scipy's."""
    import scipy.fft

    with scipy.fft.set_backend("scipy", only=True):
        return method(*args, **kwargs)


_FUNCTIONS = {
    prefix + name + suffix: getattr(fft, prefix + name + suffix)
    for names, suffixes in ((("fft", "rfft", "hfft"), ("", "2", "n")), (("dct", "dst"), ("", "n")))
    for name in names
    for prefix in ("", "i")
    for suffix in suffixes
}

backend = Backend()
