"""Transforms of files."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

from ferrier._ferrier import FerrierError


def transform(source: str | os.PathLike[str], target: str | os.PathLike[str], **options: Any) -> None:
    """Transforms a file or store that may be larger than what Python holds, as `ferrier transform SOURCE TARGET` does: .npy
    files, and stores of Zarr where the command reads them.

    Options are those of the command: `transform("a.npy", "b.npy", real=True, axes=(0, 2), ranks=4, in_layout="bricks")`.
    """
    words = ["transform", os.fspath(source), os.fspath(target)]
    for name, value in options.items():
        if value is None or value is False:
            continue
        words.append("--" + name.replace("_", "-"))
        if value is not True:
            words.append(",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value))
    # A process of its own: it is not one of the ranks of a launch.
    environment = {**os.environ, "FERRIER_MPI": "off"}
    done = subprocess.run([sys.executable, "-m", "ferrier", *words], capture_output=True, text=True, env=environment)
    if done.returncode:
        lines = (done.stderr.strip() or done.stdout.strip()).splitlines()
        raise FerrierError(lines[-1].removeprefix("ferrier: ") if lines else f"exit code {done.returncode}")
