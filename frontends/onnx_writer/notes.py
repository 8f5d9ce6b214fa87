"""What ONNX has no place for: neuron names, learnable parameters, surrogates; as JSON among the file's metadata.

They are data for readers who want them; the network is in the file without them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import onnx

from snnc.compiler.expression import to_text
from snnc.compiler.graph import Conv, Graph, Input, Linear, OneToOne, Population, Scale
from snnc.frontends.onnx_writer.errors import OnnxFileError

KEY: Final = "snnc"
_LONGEST: Final = 1 << 24


def notes_of(graph: Graph) -> dict[str, Any]:
    """Return the notes on `graph` as JSON's types."""
    nodes: dict[str, Any] = {}
    for name in graph.names:
        match graph.operation(name):
            case Population() as population:
                nodes[name] = _population(population)
            case Linear(learnable=learnable) | Conv(learnable=learnable) | Scale(learnable=learnable) | OneToOne(learnable=learnable):
                nodes[name] = {"learnable": learnable}
            case Input(kind=kind):
                nodes[name] = {"kind": kind}
    return {"version": 1, "name": graph.name, "nodes": nodes, "assumptions": list(graph.assumptions)}


def _population(population: Population) -> dict[str, Any]:
    model, surrogate = population.model, population.surrogate
    return {
        "neuron": model.name,
        "inputs": list(model.inputs),
        "outputs": list(model.outputs),
        "equations": model.text,
        "learnable": sorted(population.learnable),
        "surrogate": None if surrogate is None else {"name": surrogate.name, "derivative": to_text(surrogate.derivative)},
    }


def read_notes(path: str | Path) -> dict[str, Any] | None:
    """Return the notes in an ONNX file, or None where snnc did not write it.

    Raises
    ------
    OnnxFileError
        The file cannot be read, or its notes are no JSON object.
    """
    try:
        model = onnx.load(str(path), load_external_data=False)
        text = next((p.value for p in model.metadata_props if p.key == KEY), None)
        found = None if text is None or len(text) > _LONGEST else json.loads(text)
    except Exception as error:  # protobuf's binding and json raise what they like
        raise OnnxFileError(f"the notes of {path} cannot be read ({str(error)[:120]}); write the file again.") from None
    if found is not None and not isinstance(found, dict):
        raise OnnxFileError(f"the notes of {path} are a JSON {type(found).__name__}, not an object; write the file again.")
    return found
