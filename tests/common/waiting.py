"""Imported before NumPy and PyTorch: threads of theirs that wait sleep, for others need the cores on which they would turn in circles."""

import os

os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
