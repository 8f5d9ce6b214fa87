"""A compiled network as a module of PyTorch: forward and backward run the program for this processor, under autograd.

Needs the extra ``snnc[torch]``.
"""

from __future__ import annotations

import shutil
import tempfile
import threading
import weakref
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch

from snnc.backends.cpu.adjoint import GivenAdjoint, with_input_gradients
from snnc.backends.cpu.emit import emit_cpu
from snnc.backends.cpu.engine import CpuEngine, open_engine
from snnc.backends.engine import Array
from snnc.backends.errors import TorchTensorError, UnknownNameError
from snnc.backends.events import Events
from snnc.compiler.graph import Kind, Output
from snnc.compiler.lower import lower
from snnc.compiler.optimizers import SGD
from snnc.compiler.step_program import StepProgram
from snnc.compiler.surrogate import Surrogate
from snnc.compiler.surrogates import parse_surrogate
from snnc.compiling import Model, as_graph
from snnc.options import parse_memory, parse_window

Input: TypeAlias = "torch.Tensor | Events"
"""What the module takes for an input: [T, B, *shape]."""


class Module(torch.nn.Module):  # type: ignore[misc]  # torch is not typed here
    """A network as a layer: [T, B, *input] to [T, B, *output].

    Learned parameters of the network are parameters of the module, the others buffers, under the names of
    :meth:`snnc.Session.state_dict`. The program runs on the processor, in float32; the backward pass of a forward pass that was not the
    last one runs it again.

    Parameters
    ----------
    model
        As for :func:`snnc.compile`.
    output
        Which output, where there are several.
    surrogate, gradient_window, steps, dt, input_kind, memory, threads
        As for :func:`snnc.compile`.
    input_gradients
        Compile the gradient of the inputs too, for layers in front of this one. Inputs then are values.

    Raises
    ------
    SnncError
        The network is refused.

    Examples
    --------
    >>> import snnc, torch
    >>> from snnc.torch import Module
    >>> net = snnc.Sequential(4, snnc.Dense(8), snnc.LIF(), snnc.Dense(3), snnc.LI())
    >>> layer = Module(net)
    >>> layer(torch.ones(5, 2, 4)).mean(0).sum().backward()
    >>> layer(torch.ones(5, 2, 4)).shape
    torch.Size([5, 2, 3])
    """

    def __init__(
        self,
        model: Model,
        *,
        output: str | None = None,
        surrogate: str | Surrogate | None = None,
        gradient_window: str | float | tuple[float, float] | None = None,
        steps: int | None = None,
        dt: float | None = None,
        input_kind: Kind | None = None,
        memory: str | int | None = None,
        threads: int | None = None,
        input_gradients: bool = False,
    ) -> None:
        super().__init__()
        graph = as_graph(model, dt=dt, input_kind="values" if input_gradients else input_kind)
        outputs = [name for name, _ in graph.of_type(Output)]
        if output is None and len(outputs) > 1:
            raise UnknownNameError(f"{graph.name!r} has the outputs {', '.join(outputs)}; name the one that the module returns.")
        relays: dict[str, str] = {}
        if input_gradients:
            graph, relays = with_input_gradients(graph)
        self.program: StepProgram = lower(
            graph,
            loss=GivenAdjoint(tuple(relays.values())),
            loss_output=output or outputs[0],
            optimizer=SGD(0.0),
            surrogate=parse_surrogate(surrogate) if isinstance(surrogate, str) else surrogate,
            gradient_window=parse_window(gradient_window),
            steps=steps,
        )
        self._engine = _opened(self, self.program, threads, parse_memory(memory))
        ids = {p.label: p.id for p in self.program.populations}
        self._input_adjoints = {i.id: f"d_{ids[relays[i.label]]}" for i in self.program.inputs if i.label in relays}
        self._output = next(o for o in self.program.outputs if o.id == self.program.loss_output)
        self._lock = threading.Lock()
        self._runs = 0
        self._places: dict[str, tuple[torch.nn.Module, str]] = {}
        """Where each parameter of the program is kept."""
        behind = {ids[relay] for relay in relays.values()}
        self._own_parameters({c.weight for c in self.program.connections if c.target in behind})

    def forward(self, inputs: Input | Mapping[str, Input]) -> torch.Tensor:
        """Run a sequence from the initial states.

        Parameters
        ----------
        inputs
            [T, B, *shape], float32 on the processor, or :class:`snnc.Events`; where there are several inputs, a mapping of their names.

        Returns
        -------
        torch.Tensor
            The output at every step, [T, B, *shape].

        Raises
        ------
        SessionError
            What was given does not fit the network.
        """
        given = self._given(inputs)
        order = list(given)
        tensors: list[Any] = [given[name] if isinstance(given[name], torch.Tensor) else None for name in order]
        if any(t is not None and t.requires_grad for t in tensors) and torch.is_grad_enabled() and not self._input_adjoints:
            raise TorchTensorError("an input asks for its gradient; give input_gradients=True when the module is made.")
        values = [getattr(module, name) for module, name in self._places.values()]
        found: torch.Tensor = _Sequence.apply(self, given, *tensors, *values)
        return found

    def _given(self, inputs: Input | Mapping[str, Input]) -> dict[str, Input]:
        infos = self.program.inputs
        by_name = inputs if isinstance(inputs, Mapping) else {infos[0].label: inputs}
        if set(by_name) != {i.label for i in infos}:
            raise UnknownNameError(
                f"inputs are {', '.join(map(repr, by_name))}; the module takes {', '.join(repr(i.label) for i in infos)}."
            )
        found: dict[str, Input] = {}
        for info in infos:
            value = by_name[info.label]
            if isinstance(value, torch.Tensor):
                if value.device.type != "cpu":
                    raise TorchTensorError(
                        f"the input {info.label!r} is on {value.device}; the module runs on the processor: give it .cpu()."
                    )
                value = value.float()
            if tuple(value.shape[2:]) != info.shape or min(value.shape) < 1:
                wanted = ", ".join(map(str, ("T", "B", *info.shape)))
                raise TorchTensorError(f"the input {info.label!r} has shape {list(value.shape)}; the module takes [{wanted}].")
            found[info.id] = value
        return found

    def _own_parameters(self, hidden: Collection[str | None]) -> None:
        """Register the program's parameters but those that are `hidden`, ``layer.weight`` as ``weight`` of a submodule ``layer``."""
        learned = {step.parameter for step in self.program.update}
        for name, parameter in self.program.parameters.items():
            if name in hidden:
                continue
            above, _, last = parameter.label.rpartition(".")
            home: torch.nn.Module = self
            if above:
                above = above.replace(".", "_")
                if above not in self._modules:
                    self.add_module(above, torch.nn.Module())
                home = self.get_submodule(above)
            value = torch.from_numpy(np.array(parameter.value, dtype=np.float32))
            if name in learned:
                home.register_parameter(last, torch.nn.Parameter(value))
            else:
                home.register_buffer(last, value)
            self._places[name] = (home, last)

    def _run(self, given: Mapping[str, Input], values: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """Run forward with these parameters; the next :meth:`_go_back` goes back from here."""
        self._engine.set_parameters({name: _array(value) for name, value in values.items()})
        records = self._engine.run_forward({name: v if isinstance(v, Events) else _array(v) for name, v in given.items()})
        self._runs += 1
        return torch.from_numpy(records[self._output.id])

    def _go_back(self, adjoint: torch.Tensor, steps: int, batch: int) -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]]:
        gradients = self._engine.run_backward(self._output.record, _array(adjoint))
        self._runs += 1
        shapes = {i.id: (steps, batch, *i.shape) for i in self.program.inputs}
        of_inputs = {name: self._engine.session.get(tensor).reshape(shapes[name]) for name, tensor in self._input_adjoints.items()}
        return tuple({name: torch.from_numpy(a) for name, a in found.items()} for found in (gradients, of_inputs))  # type: ignore[return-value]


class _Sequence(torch.autograd.Function):  # type: ignore[misc]  # as Module
    """Runs a :class:`Module`: arguments are the module, its inputs, input tensors again (None for events), and parameters."""

    @staticmethod
    def forward(ctx: Any, module: Module, given: dict[str, Input], *tensors: torch.Tensor | None) -> torch.Tensor:
        ctx.module, ctx.names = module, list(given)
        ctx.events = {name: value for name, value in given.items() if isinstance(value, Events)}
        ctx.save_for_backward(*tensors)
        with module._lock:
            found = module._run(given, dict(zip(module._places, tensors[len(given) :], strict=True)))
            ctx.run = module._runs
        return found

    @staticmethod
    def backward(ctx: Any, *adjoints: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        module, tensors = ctx.module, ctx.saved_tensors
        (adjoint,) = adjoints
        given = {name: ctx.events.get(name, tensor) for name, tensor in zip(ctx.names, tensors[: len(ctx.names)], strict=True)}
        with module._lock:
            if module._runs != ctx.run:
                module._run(given, dict(zip(module._places, tensors[len(given) :], strict=True)))
            gradients, of_inputs = module._go_back(adjoint, adjoint.shape[0], adjoint.shape[1])
        inputs = (of_inputs.get(name) if needed else None for name, needed in zip(given, ctx.needs_input_grad[2:], strict=False))
        return (None, None, *inputs, *(gradients.get(name) for name in module._places))


def _opened(owner: Module, program: StepProgram, threads: int | None, memory: int | None) -> CpuEngine:
    """Build the program in a folder that is deleted with `owner`."""
    folder = Path(tempfile.mkdtemp(prefix="snnc-torch-"))
    weakref.finalize(owner, shutil.rmtree, folder, ignore_errors=True)
    emit_cpu(program, folder / "project")
    return open_engine(folder / "project", threads, memory)


def _array(tensor: torch.Tensor) -> Array:
    found: Array = tensor.detach().contiguous().numpy()
    return found
