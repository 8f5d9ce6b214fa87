"""Imported by processes that tests start: they compile checks of CUDA programs as the tests do, so that they share objects."""

import os

from snnc.backends.cuda import build

FLAGS = "SNNC_TEST_HOST_FLAGS"
"""Environment variable with the flags of the tests."""

if FLAGS in os.environ:
    build.HOST_FLAGS = tuple(os.environ[FLAGS].split())
