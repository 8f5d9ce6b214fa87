"""Imported by processes that tests start: they compile networks for the CPU, and checks of CUDA programs, with the flags of the tests."""

import os

from snnc.backends.cpu import build as cpu_build
from snnc.backends.cuda import build as cuda_build

FLAGS = "SNNC_TEST_HOST_FLAGS"
"""Environment variable with the flags of checks of CUDA programs."""
PROJECT_LEVEL = "SNNC_TEST_PROJECT_LEVEL"
"""Environment variable with the optimisation flag of a network's own sources for the CPU."""

if FLAGS in os.environ:
    cuda_build.HOST_FLAGS = tuple(os.environ[FLAGS].split())
if PROJECT_LEVEL in os.environ:
    cpu_build.PROJECT_LEVEL = os.environ[PROJECT_LEVEL]
