"""Turn any failure while reading a file into an error with a code."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from snnc.compiler.errors import SnncError
from snnc.frontends.onnx.errors import OnnxLimitError, UnforeseenError


@contextmanager
def refusing(path: Path, what: str, advice: str) -> Iterator[None]:
    """Turn every exception without a code into an error about the file.

    Parameters
    ----------
    path
        The file that is read.
    what
        Participle for the message "FILE cannot be ...": "read" or "converted".
    advice
        Advice for the user, after an unexpected exception.

    Raises
    ------
    OnnxLimitError
        The file exhausts the stack or the memory.
    UnforeseenError
        An unexpected exception occurred.
    """
    try:
        yield
    except (RecursionError, MemoryError) as error:
        raise OnnxLimitError(f"{path} is nested too deeply or needs more memory than is available ({type(error).__name__}).") from None
    except SnncError:
        raise
    except Exception as error:  # a file with a fault that no check anticipates is rejected like any other
        raise UnforeseenError(
            f"{path} cannot be {what} because of an unexpected error ({type(error).__name__}: {str(error)[:120]}); {advice}."
        ) from error
