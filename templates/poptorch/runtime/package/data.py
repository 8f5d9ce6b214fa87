"""Samples for train.py: from a file, or random ones without a file."""

import torch

from .description import BATCH, INPUTS, NETWORK, OUTPUTS, STEPS
from .weights import load_file


def dataset(path, seed, least):
    """Return a data set of inputs and targets from the safetensors file `path`.

    If `path` is None, draw random samples, whose inputs spike at a rate of one in ten: `least`, but at least four micro-batches.
    """
    tensors = load_file(path) if path else _drawn(seed, least)
    missing = [name for name in [i["name"] for i in INPUTS] + ["labels"] if name not in tensors]
    if missing:
        raise SystemExit("{} lacks {}".format(path, ", ".join(missing)))
    inputs = [tensors[i["name"]].to(torch.float32) for i in INPUTS]
    for about, tensor in zip(INPUTS, inputs):
        shape = ([] if about["static"] else [STEPS]) + about["shape"]
        if list(tensor.shape[1:]) != shape:
            raise SystemExit("input {} has samples of shape {}, not {}".format(about["name"], list(tensor.shape[1:]), shape))
        if about["kind"] == "events" and not bool(((tensor == 0) | (tensor == 1)).all()):
            raise SystemExit("input {} takes spikes, 0 or 1; another number was given".format(about["name"]))
    return torch.utils.data.TensorDataset(*inputs, _checked_targets(tensors["labels"]))


def _targets():
    """Return the targets: by default one class per sample."""
    classes = OUTPUTS[NETWORK["loss_output"]]["shape"][-1]
    return NETWORK.get("targets", {"kind": "class", "shape": [], "classes": classes, "lengths": False})


def _checked_targets(labels):
    about = _targets()
    if list(labels.shape[1:]) != about["shape"]:
        raise SystemExit("targets of a sample have shape {}, not {}".format(list(labels.shape[1:]), about["shape"]))
    labels = labels.to(torch.long if about["classes"] else torch.float32)
    if about["lengths"] and bool(((labels[:, -1] < 1) | (labels[:, -1] > STEPS)).any()):
        raise SystemExit("the length of a sequence is not in 1 ... {}".format(STEPS))
    classes = labels[:, 0] if about["lengths"] else labels
    least = -1 if about["kind"] == "step_classes" else 0
    if about["classes"] and bool(((classes < least) | (classes >= about["classes"])).any()):
        raise SystemExit("a label is not one of the {} classes".format(about["classes"]))
    return labels


def _drawn(seed, least):
    torch.manual_seed(seed)
    samples = max(least, 4 * BATCH)
    shapes = {i["name"]: [samples] + ([] if i["static"] else [STEPS]) + i["shape"] for i in INPUTS}
    tensors = {name: (torch.rand(shape) < 0.1).to(torch.float32) for name, shape in shapes.items()}
    about = _targets()
    shape = [samples] + about["shape"]
    tensors["labels"] = torch.randint(0, about["classes"], shape) if about["classes"] else torch.randn(shape)
    if about["lengths"]:
        tensors["labels"][:, -1] = torch.randint(1, STEPS + 1, [samples]).to(tensors["labels"].dtype)
    return tensors
