"""What network.json says of the compiled network."""

import json
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent
"""Where the library, codelets, tables and weights stand."""
NETWORK = json.loads((FOLDER / "network.json").read_text(encoding="utf-8"))
STEPS = NETWORK["steps"]
BATCH = NETWORK["batch"]
"""Samples that the operation takes at once: the micro-batch of PopTorch."""
INPUTS = NETWORK["inputs"]
OUTPUTS = NETWORK["outputs"]
LABELS = {p["label"]: p["name"] for p in NETWORK["parameters"]}
"""The author's names of parameters, as in ``hidden.weight``, to the names of this module."""
