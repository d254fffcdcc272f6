"""fluidfft's own tests of its plugins, with Ferrier's."""

import unittest

import pytest

pytest.importorskip("fluidfft", reason="fluidfft is not installed")

from fluidfft import create_fft_object, get_methods  # noqa: E402
from fluidfft.fft2d.testing import complete_test_class_2d  # noqa: E402
from fluidfft.fft3d.testing import complete_test_class_3d  # noqa: E402


class Tests2D(unittest.TestCase):
    pass


class Tests3D(unittest.TestCase):
    pass


complete_test_class_2d("fft2d.with_ferrier", Tests2D)
complete_test_class_3d("fft3d.with_ferrier", Tests3D)
complete_test_class_3d("fft3d.mpi_with_ferrier", Tests3D)


def test_the_plugins_are_found():
    assert {"fft2d.with_ferrier", "fft3d.with_ferrier", "fft3d.mpi_with_ferrier"} <= get_methods()
    assert create_fft_object("fft3d.mpi_with_ferrier", 4, 6, 8).get_shapeK_seq() == (6, 4, 5)
