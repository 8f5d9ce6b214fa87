"""Samples for train.py: from a file, or drawn where there is none."""

import torch

from .description import BATCH, INPUTS, NETWORK, OUTPUTS, STEPS
from .weights import load_file


def dataset(path, seed, least):
    """Return a data set of inputs and labels.

    `path`: a safetensors file, or None: `least` samples are drawn, spikes at a rate of one in ten.
    """
    tensors = load_file(path) if path else _drawn(seed, least)
    missing = [name for name in [i["name"] for i in INPUTS] + ["labels"] if name not in tensors]
    if missing:
        raise SystemExit("{} lacks {}".format(path, ", ".join(missing)))
    found = [tensors[i["name"]].to(torch.float32) for i in INPUTS]
    for about, tensor in zip(INPUTS, found):
        shape = ([] if about["static"] else [STEPS]) + about["shape"]
        if list(tensor.shape[1:]) != shape:
            raise SystemExit("input {} has samples of shape {}, not {}".format(about["name"], list(tensor.shape[1:]), shape))
        if about["kind"] == "events" and not bool(((tensor == 0) | (tensor == 1)).all()):
            raise SystemExit("input {} takes spikes, 0 or 1; another number was given".format(about["name"]))
    labels = tensors["labels"].to(torch.long)
    classes = OUTPUTS[NETWORK["loss_output"]]["shape"][-1]
    if bool(((labels < 0) | (labels >= classes)).any()):
        raise SystemExit("a label is not one of the {} classes".format(classes))
    return torch.utils.data.TensorDataset(*found, labels)


def _drawn(seed, least):
    torch.manual_seed(seed)
    samples = max(least, 4 * BATCH)
    shapes = {i["name"]: [samples] + ([] if i["static"] else [STEPS]) + i["shape"] for i in INPUTS}
    tensors = {name: (torch.rand(shape) < 0.1).to(torch.float32) for name, shape in shapes.items()}
    tensors["labels"] = torch.randint(0, OUTPUTS[NETWORK["loss_output"]]["shape"][-1], [samples])
    return tensors
