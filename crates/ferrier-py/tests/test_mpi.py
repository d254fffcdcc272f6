"""The program of mpi_program.py under the launchers that are installed."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mpi4py", reason="mpi4py is not installed")


@pytest.mark.parametrize("ranks", [1, 3])
def test_mpi4py(ranks):
    launcher = shutil.which("mpiexec")
    if launcher is None:
        pytest.skip("no mpiexec is installed")
    program = Path(__file__).with_name("mpi_program.py")
    environment = {
        **os.environ,
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMPI_MCA_rmaps_base_oversubscribe": "1",
    }
    done = subprocess.run(
        [launcher, "-n", str(ranks), sys.executable, program], capture_output=True, text=True, timeout=100, env=environment
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{ranks} ranks agree with numpy" in done.stdout
