"""The description of the compiled network, from network.json."""

import json
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent
"""Folder of the library, codelets, tables and weights."""
NETWORK = json.loads((FOLDER / "network.json").read_text(encoding="utf-8"))
STEPS = NETWORK["steps"]
BATCH = NETWORK["batch"]
"""Number of samples per call of the operation: the micro-batch size of PopTorch."""
INPUTS = NETWORK["inputs"]
OUTPUTS = NETWORK["outputs"]
LABELS = {p["label"]: p["name"] for p in NETWORK["parameters"]}
"""Maps each parameter's name in the model, such as ``hidden.weight``, to its name in the torch module (as in weights.safetensors)."""
