"""Data-parallel training by processes of ``torchrun``: each runs a share of every batch, and torch sums the gradients."""

from __future__ import annotations

import atexit
import hashlib
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import numpy as np

from snnc.backends.runtime.engine import Array, Engine, OptimizerValues, SharingEngine
from snnc.backends.runtime.errors import RanksDifferError, RanksGroupError, ShareError, UnsharedTargetError
from snnc.backends.runtime.targets import as_targets
from snnc.backends.training.data.batches import TrainingData
from snnc.backends.training.updates.normalising import NormalisingEngine
from snnc.compiler.errors import ToolMissingError

_ENVIRONMENT: Final = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
"""Environment variables that ``torchrun`` sets for each process."""
_HELP: Final = "or give fit(distributed=False) to train each process by itself"


class Ranks:
    """The processes that train together, seen from one of them; those that cannot communicate raise an error.

    The gradients of `engine` are summed; `normalising` is the engine around it that computes the statistics of each batch, None if the
    network has no batch normalisation. No data are exchanged before :meth:`begin`, which detects differences between the engines.
    """

    def __init__(self, engine: SharingEngine, normalising: NormalisingEngine | None = None) -> None:
        self.engine = engine
        self._gathering = normalising or engine
        if normalising is not None:
            normalising.share_batches(self.total)
        self._torch, self._group = _joined(engine.device)
        self.rank: int = self._group.get_rank()
        self.size: int = self._group.get_world_size()
        self._device = summing_device(self._group.get_backend_config(), engine.device)
        self._flat = self._torch.zeros(engine.gradient_elements + 2, dtype=self._torch.float32, device=self._device)
        """Buffer of all gradients, the loss, and the number of processes that must stop."""
        self._wait()

    def share(self, samples: Array) -> Array:
        """Return the samples of an update that this process runs; the shares differ by at most one sample and may be empty."""
        return np.array_split(samples, self.size)[self.rank]

    def begin(self, schedule: object, labels: Array) -> None:
        """Check that the processes agree, and copy the parameters and the state of the optimiser from rank 0.

        `labels` are the labels of all samples, [samples]. `schedule` contains the shapes of samples, their division into updates, and the
        starting position. Raises a RanksDifferError if the processes would train different networks, with different settings or on
        different samples, and a RanksGroupError if they cannot reach each other.
        """
        self._compare("the network, target, loss or optimizer", self.engine.fingerprint.encode())
        settings = "the number of epochs, the batch, the seed, the parts of an update, the samples' shape or the checkpoint"
        self._compare(settings, repr(schedule).encode())
        self._compare("the labels (each process must get all samples, and runs its share of every batch)", _bytes(as_targets(labels)))
        self._accept_leader()

    def gather_parts(self, parts: Iterable[tuple[Mapping[str, Array], Array]], samples: int, first: int) -> float:
        """See :class:`~snnc.backends.runtime.engine.SplitEngine`; `parts` are those of this process."""
        return self._gathering.gather_parts(parts, samples, first)

    def total(self, values: Array) -> Array:
        """Return the sum of `values`, with the same shape in all processes, as float64."""
        summed = self._torch.from_numpy(np.array(values, dtype=np.float64)).to(self._device)
        with self._talking():
            self._group.all_reduce(summed)
        result: Array = summed.cpu().numpy()
        return result

    def update(self, loss: float, has_samples: bool, learning_rate: float, stop: bool) -> tuple[float, bool]:
        """Sum the gradients and losses of all processes and make the update; return the loss, and whether any process must stop.

        `loss` is the contribution of this process; if it `has_samples`, its engine contains gradients; `stop` says whether it must stop.
        """
        flat = self._flat
        if has_samples:
            self.engine.gradients_to(flat.data_ptr())
            flat[-2] = loss
        else:
            flat.zero_()
        flat[-1] = float(stop)
        self._sum()
        self.engine.gradients_from(flat.data_ptr())
        self.engine.change_parameters(learning_rate)
        return float(flat[-2]), bool(flat[-1] > 0)

    def gather(self, items: list[Any]) -> list[Any]:
        """Return the concatenated lists of all processes."""
        gathered: list[list[Any]] = [[] for _ in range(self.size)]
        with self._talking():
            self._group.all_gather_object(gathered, items)
        return [item for of_process in gathered for item in of_process]

    def meet(self) -> None:
        """Wait for the other processes."""
        self._compare("their progress", b"")

    def end(self) -> None:
        """Raise a RanksDifferError unless the parameters have the same bits in all processes."""
        values = self.engine.get_parameters()
        self._compare("the trained parameters (learning rates, or the arithmetic of the processors, differ)", *map(_bytes, values.values()))

    def _sum(self) -> None:
        """Sum the buffer over all processes.

        The program's kernels and torch's kernels for the sum do not overlap, because each may need the whole device: engine calls return
        only when their kernels have finished.
        """
        with self._talking():
            self._group.all_reduce(self._flat)
        self._wait()

    def _accept_leader(self) -> None:
        """Set the parameters and the state of the optimiser to those of rank 0."""
        self.engine.set_parameters(self._of_first(self.engine.get_parameters()))
        state = self.engine.get_optimizer()
        moments = {moment: self._of_first(values) for moment, values in state.moments.items()}
        count = self._torch.tensor([state.updates], dtype=self._torch.int64, device=self._device)
        self._group.broadcast(count, 0)
        scale = None
        if state.loss_scale is not None:
            pair = self._of_first({"scale": np.array(state.loss_scale)})["scale"]
            scale = float(pair[0]), int(pair[1])
        self.engine.set_optimizer(OptimizerValues(int(count[0]), moments, scale))

    def _of_first(self, values: Mapping[str, Array]) -> dict[str, Array]:
        """Return the `values` of rank 0."""
        received = {}
        for name, value in values.items():
            sent = self._torch.from_numpy(np.array(value, dtype=np.float32)).to(self._device)
            self._group.broadcast(sent, 0)
            received[name] = sent.cpu().numpy()
        return received

    def _compare(self, what: str, *parts: bytes) -> None:
        """Raise an error if the processes differ in `parts`."""
        digest = hashlib.sha256()
        for part in parts:
            digest.update(part)
        here = self._torch.tensor(list(digest.digest()), dtype=self._torch.uint8, device=self._device)
        digests = [self._torch.empty_like(here) for _ in range(self.size)]
        with self._talking():
            self._group.all_gather(digests, here)
        others = [rank for rank, other in enumerate(digests) if not self._torch.equal(other, digests[0])]
        if others:
            raise RanksDifferError(
                f"of {self.size} processes that train together, rank {', '.join(map(str, others))} and rank 0 differ in {what}. Make "
                f"them equal in all processes, {_HELP}."
            )

    @contextmanager
    def _talking(self) -> Iterator[None]:
        """Convert torch's errors about unreachable processes to an error with a code."""
        try:
            yield
        except RuntimeError as error:
            sent = self._group.get_backend_config()
            message = f"the {self.size} processes that train together cannot reach each other by {sent}: {_line(error)}"
            raise RanksGroupError(message) from None

    def _wait(self) -> None:
        """Wait for torch's current stream."""
        if self._device != "cpu":
            self._torch.cuda.current_stream(self._device).synchronize()


def ranks_for(engine: Engine, data: TrainingData) -> Ranks | None:
    """Return the processes that train together on `data`; None if this process trains alone.

    Raises an UnsharedTargetError if the data or the target cannot be shared, a ShareError if a batch has fewer samples than there are
    processes, and a ToolMissingError or RanksGroupError if the processes cannot communicate.
    """
    size, batch = processes(), data.plan.batch
    if size == 1:
        return None
    if not data.samples:
        raise UnsharedTargetError(
            "processes that train together share arrays or a data set, but x yields batches; give arrays or a data set, or use "
            "snnc.torch.Module with DistributedDataParallel, or distributed=False to train each process by itself."
        )
    normalising = engine if isinstance(engine, NormalisingEngine) else None
    sharing: Engine = engine if normalising is None else normalising.engine
    if engine.batch is not None or not isinstance(sharing, SharingEngine):
        raise UnsharedTargetError(
            f"{size} processes were started to train together, but only the targets 'cpu' and 'cuda' sum gradients over processes. Use "
            f"one of these, {_HELP}."
        )
    if batch < size:
        raise ShareError(f"a batch of {batch} samples cannot be shared by {size} processes; use a larger batch or fewer processes.")
    return Ranks(sharing, normalising)


def processes() -> int:
    """Return the number of processes that train together: the size of torch's process group, else that of ``torchrun``, else 1."""
    group = _open_group()
    if group is not None:
        return int(group.get_world_size())
    size = os.environ.get("WORLD_SIZE", "")
    return max(1, int(size)) if size.isdecimal() and all(name in os.environ for name in _ENVIRONMENT) else 1


def leads() -> bool:
    """Return whether this process writes files and results: it trains alone, or is rank 0."""
    group = _open_group()
    if group is not None:
        return int(group.get_rank()) == 0
    return processes() == 1 or os.environ["RANK"] == "0"


def _open_group() -> Any | None:
    """Return ``torch.distributed`` if its process group exists."""
    group = sys.modules.get("torch.distributed")
    return group if group is not None and group.is_available() and group.is_initialized() else None


def _joined(device: int | None) -> tuple[Any, Any]:
    """Return torch and its process group, which is created if it does not exist; NCCL uses the session's device."""
    try:
        import torch
        from torch import distributed
    except ImportError:
        raise ToolMissingError(
            f"{processes()} processes were started to train together, but PyTorch, which sums their gradients, is not installed; "
            f"pip install torch (or snnc[torch]), {_HELP}."
        ) from None
    if not distributed.is_available():
        raise RanksGroupError(f"this PyTorch ({torch.__version__}) has no torch.distributed; install a different build, {_HELP}.")
    if device is not None and torch.cuda.is_available():
        torch.cuda.set_device(device)
    if not distributed.is_initialized():
        nccl = device is not None and torch.cuda.is_available() and distributed.is_nccl_available()
        try:
            distributed.init_process_group("nccl" if nccl else "gloo")
        except (RuntimeError, ValueError) as error:
            variables = ", ".join(f"{name}={os.environ.get(name)}" for name in _ENVIRONMENT)
            raise RanksGroupError(f"the processes cannot find each other ({variables}): {_line(error)}") from None
        atexit.register(_leave)
    return torch, distributed


def _leave() -> None:
    group = _open_group()
    if group is not None:
        group.destroy_process_group()


def summing_device(backends: str, device: int | None) -> str:
    """Return the device on which gradients are summed: the session's, unless torch can only send host memory.

    `backends` contains memory kinds with their torch backends, such as ``"cpu:gloo,cuda:nccl"``; `device` is the number of the session's
    device, None for the CPU. Raises a RanksGroupError if torch cannot send host memory, but the gradients are in host memory.
    """
    known = dict(part.split(":", 1) for part in backends.split(",") if ":" in part)
    if device is not None and known.get("cuda", "gloo") != "gloo":
        return f"cuda:{device}"
    if "cpu" in known:
        return "cpu"
    raise RanksGroupError(
        f"torch's process group sends {backends}, but the gradients of this session are in host memory; create the group with "
        f"init_process_group('cpu:gloo,cuda:nccl'), let snnc create it, {_HELP}."
    )


def _line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)


def _bytes(value: Array) -> bytes:
    return np.ascontiguousarray(value).tobytes()
