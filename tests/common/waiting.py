"""Imported before NumPy and PyTorch, so that their waiting threads sleep instead of spinning on cores that others need."""

import os

os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
