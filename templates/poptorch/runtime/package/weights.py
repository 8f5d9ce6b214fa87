"""Reads and writes safetensors files with torch only; nothing is unpickled."""

import json
import os
import struct

import torch

TYPES = {"F32": torch.float32, "F16": torch.float16, "I32": torch.int32, "I64": torch.int64, "U8": torch.uint8}
LONGEST_HEAD = 100 << 20


def load_file(path):
    """Return the tensors of a safetensors file by name.

    Raises ValueError if the file is damaged or contains an element type that is not in TYPES.
    """
    with open(path, "rb") as stream:
        content = stream.read()
    if len(content) < 8:
        raise ValueError("{} is not a safetensors file".format(path))
    (length,) = struct.unpack("<Q", content[:8])
    if length > min(LONGEST_HEAD, len(content) - 8):
        raise ValueError("{} is truncated".format(path))
    head = json.loads(content[8 : 8 + length].decode("utf-8"))
    begin = 8 + length
    return {name: _tensor(path, name, about, content, begin) for name, about in head.items() if name != "__metadata__"}


def _tensor(path, name, about, content, begin):
    kind = TYPES.get(about["dtype"])
    if kind is None:
        raise ValueError("{}: {} is {}, not one of {}".format(path, name, about["dtype"], ", ".join(TYPES)))
    first, last = about["data_offsets"]
    elements = 1
    for size in about["shape"]:
        elements *= size
    each = torch.empty(0, dtype=kind).element_size()
    if not (0 <= first <= last <= len(content) - begin) or last - first != elements * each:
        raise ValueError("{}: the size of {} does not match its shape".format(path, name))
    if elements == 0:
        return torch.zeros(about["shape"], dtype=kind)
    return torch.frombuffer(bytearray(content[begin + first : begin + last]), dtype=kind).reshape(about["shape"])


def save_file(tensors, path):
    """Write tensors of 32-bit floats by name; the file appears completely or not at all."""
    head, pieces, position = {}, [], 0
    for name, tensor in tensors.items():
        data = tensor.detach().to("cpu", torch.float32).contiguous()
        size = 4 * data.numel()
        head[name] = {"dtype": "F32", "shape": list(data.shape), "data_offsets": [position, position + size]}
        pieces.append(bytes(data.reshape(-1).view(torch.uint8).tolist()))
        position += size
    text = json.dumps(head).encode("utf-8")
    text += b" " * (-len(text) % 8)
    beside = str(path) + ".part"
    with open(beside, "wb") as stream:
        stream.write(struct.pack("<Q", len(text)) + text)
        for piece in pieces:
            stream.write(piece)
    os.replace(beside, str(path))
