"""Published checksums of data set archives."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Final

from snnc.data.readers.files import opened_file
from snnc.errors import ChecksumError

OFFICIAL: Final = {
    "train-images-idx3-ubyte.gz": "f68b3c2dcbeaaa9fbdd348bbdeb94873",
    "train-labels-idx1-ubyte.gz": "d53e105ee54ea40749a09fcbcd1e9432",
    "t10k-images-idx3-ubyte.gz": "9fb629c4189551a2d022fa330f9573f3",
    "t10k-labels-idx1-ubyte.gz": "ec29112dd5afa0611ce80d1b7f02629c",
    "shd_train.h5.zip": "f3252aeb598ac776c1b526422d90eecb",
    "shd_test.h5.zip": "1503a5064faa34311c398fb0a1ed0a6f",
    "ssc_train.h5.zip": "d102be95e7144fcc0553d1f45ba94170",
    "ssc_valid.h5.zip": "b4eee3516a4a90dd0c71a6ac23a8ae43",
    "ssc_test.h5.zip": "a35ff1e9cffdd02a20eb850c17c37748",
    "Train.zip": "20959b8e626244a1b502305a9e6e2031",
    "Test.zip": "69ca8762b2fe404d9b9bad1103e97832",
    "DvsGesture.tar.gz": "8a5c71fb11e24e5ca5b11866ca6c00a1",
}
"""MD5 by archive name, as listed by torchvision (MNIST), tonic (SHD, SSC) and SpikingJelly (N-MNIST, DVS-Gesture, SHD)."""


def verify_archive(path: str | Path) -> None:
    """Compare a downloaded archive of MNIST, SHD, SSC, N-MNIST or DVS-Gesture with its published MD5.

    Extracted files have no published checksums.

    Raises
    ------
    ChecksumError
        The checksum differs, or none is known for a file of this name.
    DataFileError
        The file cannot be read.
    """
    file = Path(path)
    if file.name not in OFFICIAL:
        raise ChecksumError(f"no checksum is known for a file called {file.name!r}; known files: {', '.join(OFFICIAL)}.")
    with opened_file(file) as stream:
        digest = hashlib.file_digest(stream, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
    if digest != OFFICIAL[file.name]:
        raise ChecksumError(f"{str(file)!r} has the MD5 {digest}, but the published file has {OFFICIAL[file.name]}; download it again.")
