"""A compiled network as a PyTorch module, whose forward and backward passes run the compiled program under autograd.

Requires the extra ``snnc[torch]``.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any, Final, TypeAlias

import numpy as np
import torch

from snnc.backends.cuda.engine import CudaEngine
from snnc.backends.native.sequence_engine import SequenceEngine
from snnc.backends.registry import PROCESSOR
from snnc.backends.runtime.errors import TorchTensorError, UnknownNameError
from snnc.backends.runtime.events import Events
from snnc.backends.training.updates.norm_layers import trains_normalised
from snnc.backends.training.updates.run_values import GradientWindow
from snnc.compiler.ir.graph import Kind
from snnc.compiler.ir.graph_text import headline
from snnc.compiler.ir.plan import Precision
from snnc.compiler.ir.step_program import StepProgram
from snnc.compiler.lowering.statistics import visible
from snnc.compiler.neurons.surrogates.surrogate import Surrogate
from snnc.driver.learnable import with_learnable
from snnc.driver.loading import Model, as_graph
from snnc.errors import OptionTargetError
from snnc.options.compile_options import options as make_options
from snnc.torch_machine import MachineRun
from snnc.torch_norms import ModuleNorms
from snnc.torch_program import ModuleProgram, ModuleRecipe, chosen_outputs, lower_module, opened

Input: TypeAlias = "torch.Tensor | Events"
"""Types of an input with the shape [T, B, *shape]."""


_BUILT: Final = ("_lowered", "_device", "_places", "_lock", "_runs", "_process", "_engine", "_folder", "_machine", "_norms", "_window")
"""Attributes with the program and its engine; copies and pickles omit them and build them again."""


class Module(torch.nn.Module):  # type: ignore[misc]  # torch is not typed here
    """A network as a layer, from [T, B, *input] to [T, B, *output].

    Learned parameters of the network are parameters of the module and the others are buffers, named as in
    :meth:`snnc.Session.state_dict`. Tensors are float32. A backward pass that does not belong to the last forward pass repeats its
    forward pass first. On a GPU, the module's parameters, inputs and outputs are tensors on the device; the program reads and writes them
    in place, in torch's current stream and without blocking the host. If a spike input on a GPU contains a value other than 0 or 1, the
    output is NaN, and a later forward pass raises an error.

    In ``train()`` mode, dropout layers draw masks, and batch normalisations use the statistics of the batch and update the running
    statistics, which are buffers; in ``eval()`` mode, nothing is dropped and the running statistics apply.

    Modules can be copied, pickled and passed to other processes: a copy builds its program when it first runs.

    Parameters
    ----------
    model
        As in :func:`snnc.compile`.
    target
        ``"cpu"``, ``"cuda"``, or a machine (``"gc200"``, ``"pod4"``, a TOML file), which is emulated if there is no IPU.
    output
        Name of the output, or names in the desired order; by default all. With one output :meth:`forward` returns a tensor, else a tuple.
    surrogate, gradient_window, steps, dt, input_kind, memory, threads, truncate, precision, learnable
        As in :func:`snnc.compile`. A machine requires `steps`, and accepts sequences of at most this many steps.
    batch
        Maximum number of samples per call on a machine, 32 by default; other targets accept any number.
    input_gradients
        Whether to compute gradients of the inputs, for layers before this one. Inputs are then values or, with
        ``input_kind="spikes"``, spikes, which the program moves as events.

    Raises
    ------
    SnncError
        The network cannot be compiled.

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
        target: str = PROCESSOR,
        output: str | Sequence[str] | None = None,
        surrogate: str | Surrogate | None = None,
        gradient_window: str | float | tuple[float, float] | None = None,
        steps: int | None = None,
        batch: int | None = None,
        dt: float | None = None,
        input_kind: Kind | None = None,
        memory: str | int | None = None,
        threads: int | None = None,
        truncate: int | None = None,
        precision: Precision = "float32",
        input_gradients: bool = False,
        learnable: str | Iterable[str] | None = None,
    ) -> None:
        super().__init__()
        # With a loss, the target compiles the network for training; PyTorch computes the actual loss.
        options = make_options(
            target,
            steps=steps,
            batch=batch,
            loss="ce_count",
            surrogate=surrogate,
            gradient_window=gradient_window,
            memory=memory,
            threads=threads,
            truncate=truncate,
            precision=precision,
            learnable=learnable,
        )
        if batch is not None and options.backend.native:
            raise OptionTargetError(f"batch = {batch} is for machines; a module on {target!r} accepts any number of samples; leave it out.")
        if input_gradients and input_kind is None:
            input_kind = "values"
        graph = with_learnable(as_graph(model, dt=dt, input_kind=input_kind, steps=steps), learnable)
        self._recipe = ModuleRecipe(graph, options, chosen_outputs(graph, output), input_gradients)
        self._window_now: tuple[float, float] | None = None
        self._drawn = 0
        """Number of dropout mask draws; each forward call in ``train()`` mode draws new masks."""
        self._prepare()
        self._open()
        self._register_parameters()

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the outputs that :meth:`forward` returns, in order."""
        return self._recipe.outputs

    @property
    def program(self) -> StepProgram:
        """The step program of the module."""
        return self._lowered.program

    @property
    def gradient_window(self) -> tuple[float, float] | None:
        """Ends of the gradient window, as membrane potential minus threshold; None if the module was created without one.

        It can be set between forward passes, to a pair or to the lower end alone, within the window at creation.
        """
        return self._window_now

    @gradient_window.setter
    def gradient_window(self, window: float | tuple[float, float]) -> None:
        with self._in_torch_stream():
            self._window.set(*(window if isinstance(window, tuple | list) else (window,)))
            self._window_now = self._window.now

    def forward(self, inputs: Input | Mapping[str, Input]) -> torch.Tensor | tuple[torch.Tensor, ...]:
        """Run a sequence from the initial states.

        Parameters
        ----------
        inputs
            [T, B, *shape], float32 on the device of the program, or :class:`snnc.Events`; for several inputs, a mapping by name.

        Returns
        -------
        torch.Tensor, or tuple of them
            The output at every step, [T, B, *shape]; for several outputs a tuple, in the order of `outputs`.

        Raises
        ------
        SessionError
            The arguments do not fit the network.
        """
        given = self._inputs_by_id(inputs)
        order = list(given)
        tensors: list[Any] = [given[name] if isinstance(given[name], torch.Tensor) else None for name in order]
        if any(t is not None and t.requires_grad for t in tensors) and torch.is_grad_enabled() and not self._lowered.input_adjoints:
            raise TorchTensorError("an input requires a gradient; create the module with input_gradients=True.")
        values = [getattr(module, name) for module, name in self._places.values()]
        output: torch.Tensor = _Sequence.apply(self, given, *tensors, *values)
        if len(self.outputs) == 1:
            return output
        shapes = self._lowered.shapes
        parts = output.split([math.prod(shape) for shape in shapes], dim=2)
        return tuple(part.reshape(*output.shape[:2], *shape) for part, shape in zip(parts, shapes, strict=True))

    def extra_repr(self) -> str:
        """Return the text that ``repr`` shows in addition to the layers."""
        return f"{headline(self._recipe.graph)}, target={self._recipe.options.target!r}, outputs={self.outputs!r}"

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for copies and pickles: network, options and weights; each copy builds its own program."""
        state = {name: value for name, value in self.__dict__.items() if name not in _BUILT}
        return state | {"_recipe": self._recipe.to_state()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._recipe = ModuleRecipe.from_state(state["_recipe"])
        self._prepare()

    def _prepare(self) -> None:
        """Set the attributes that are not pickled, except the engine."""
        self._lowered: ModuleProgram = lower_module(self._recipe)
        on_device = self._recipe.options.backend.on_device()
        self._device = torch.device("cuda", torch.cuda.current_device()) if on_device else torch.device("cpu")
        self._places: dict[str, tuple[torch.nn.Module, str]] = {}
        """Submodule and attribute of each parameter of the network, by the parameter's name in the program."""
        for name, parameter in self.program.parameters.items():
            if name not in self._lowered.internal_parameters:
                above, _, last = parameter.label.rpartition(".")
                above = above.replace(".", "_")
                if above and above not in self._modules:
                    self.add_module(above, torch.nn.Module())
                self._places[name] = (self.get_submodule(above), last)
        self._lock = threading.Lock()
        self._runs = 0
        """Number of forward and backward passes, by which a backward pass recognises whether its forward pass was the last pass."""
        self._process: int | None = None
        """Id of the process that opened the program; its threads do not survive a fork."""

    def _open(self) -> None:
        engine, self._folder = opened(self._recipe.graph, self.program, self._recipe.options, self._device.index)
        self._machine: MachineRun | None = None
        self._norms: ModuleNorms | None = None
        if isinstance(engine, SequenceEngine):
            self._engine = engine
            if trains_normalised(self.program):
                self._norms = ModuleNorms(engine, self.program)
        else:
            self._machine = MachineRun(engine, self._lowered)
        self._window = GradientWindow(self.program, engine)
        if self._window_now is not None:
            self._window.set(*self._window_now)
        self._window_now = self._window.now
        self._process = os.getpid()

    def _inputs_by_id(self, inputs: Input | Mapping[str, Input]) -> dict[str, Input]:
        infos = visible(self.program).inputs
        by_name = inputs if isinstance(inputs, Mapping) else {infos[0].label: inputs}
        if set(by_name) != {i.label for i in infos}:
            raise UnknownNameError(
                f"inputs are {', '.join(map(repr, by_name))}; the module accepts {', '.join(repr(i.label) for i in infos)}."
            )
        by_id: dict[str, Input] = {}
        for info in infos:
            value = by_name[info.label]
            if isinstance(value, torch.Tensor):
                if value.device != self._device:
                    there = str(self._device)
                    raise TorchTensorError(
                        f"the input {info.label!r} is on {value.device}, but the module runs on {there}; use .to({there!r})."
                    )
                value = value.float()
            if tuple(value.shape[2:]) != info.shape or min(value.shape) < 1:
                wanted = ", ".join(map(str, ("T", "B", *info.shape)))
                raise TorchTensorError(f"the input {info.label!r} has shape {list(value.shape)}; the module accepts [{wanted}].")
            by_id[info.id] = value
        return by_id

    def _register_parameters(self) -> None:
        """Register the program's parameters: ``layer.weight`` becomes ``weight`` of a submodule ``layer``."""
        learned = {step.parameter for step in self.program.update}
        for name, (home, last) in self._places.items():
            value = torch.from_numpy(np.array(self.program.parameters[name].value, dtype=np.float32)).to(self._device)
            if name in learned:
                home.register_parameter(last, torch.nn.Parameter(value))
            else:
                home.register_buffer(last, value)

    def _run(self, given: Mapping[str, Input], values: Mapping[str, torch.Tensor], masks: int | None, first: bool) -> torch.Tensor:
        """Run forward with these parameters, in ``train()`` mode with the dropout masks of draw number `masks`; None: ``eval()`` mode.

        The next :meth:`_go_back` is the backward pass of this run. If it is the `first` run of a batch in ``train()`` mode, update the
        running statistics of batch normalisations.
        """
        if self._machine is not None:
            output = self._machine.run(given, values, masks)
            self._runs += 1
            return output
        for name, value in values.items():
            self._give(name, value)
        inputs = {name: v if isinstance(v, Events) else self._read(v) for name, v in given.items()}
        if self._norms is not None:
            inputs, running = self._norms.begin(inputs, masks)
            if first:
                for name, value in running.items():
                    home, last = self._places[name]
                    getattr(home, last).copy_(torch.from_numpy(value))
        self._engine.run_forward(inputs, masks)
        self._runs += 1
        steps, batch = next(iter(given.values())).shape[:2]
        return self._take(self._lowered.output.record, (steps, batch, *self._lowered.output.shape))

    def _go_back(self, adjoint: torch.Tensor, steps: int, batch: int) -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]]:
        learned = {step.parameter for step in self.program.update}
        self._runs += 1
        if self._machine is not None:
            return self._machine.go_back(adjoint, [name for name in self._places if name in learned])
        self._run_backward(adjoint)
        if self._norms is not None:
            self._norms.go_back(lambda: self._run_backward(adjoint))
        gradients = {name: self._take(f"d_{name}", self.program.parameters[name].value.shape) for name in self._places if name in learned}
        shapes = {i.id: (steps, batch, *i.shape) for i in self.program.inputs}
        return gradients, {name: self._take(tensor, shapes[name]) for name, tensor in self._lowered.input_adjoints.items()}

    def _run_backward(self, adjoint: torch.Tensor) -> None:
        self._give(f"d_{self._lowered.output.record}", adjoint)
        self._engine.run_backward()

    def _give(self, name: str, value: torch.Tensor) -> None:
        """Let the program read a tensor, in place if it is contiguous, float32 and on the device of the program, otherwise as a copy.

        The copy is allocated in the current stream, so its memory is reused only after the program has run.
        """
        whole = value.detach().to(self._device, torch.float32).contiguous()
        self._engine.session.set_from(name, whole.data_ptr(), max(1, whole.numel()))

    def _take(self, name: str, shape: tuple[int, ...]) -> torch.Tensor:
        tensor = torch.empty(shape, dtype=torch.float32, device=self._device)
        self._engine.session.get_into(name, tensor.data_ptr(), max(1, tensor.numel()))
        return tensor

    def _read(self, value: torch.Tensor) -> Any:
        whole = value.detach().contiguous()
        return whole if whole.is_cuda else whole.numpy()

    @contextmanager
    def _in_torch_stream(self) -> Iterator[None]:
        """Make the program use torch's current stream, and exclude other threads.

        Autograd runs a backward pass in the stream of its forward pass, but in a thread of its own.
        """
        if self._process not in (None, os.getpid()):  # after a fork, such as in a DataLoader worker
            self._lock = threading.Lock()
        with self._lock, torch.cuda.device(self._device) if self._device.type == "cuda" else nullcontext():
            if self._process != os.getpid():
                self._open()
            if self._machine is None and isinstance(self._engine, CudaEngine):
                self._engine.use_stream(self._stream())
            yield

    def _stream(self) -> int:
        return int(torch.cuda.current_stream(self._device).cuda_stream) if self._device.type == "cuda" else 0


class _Sequence(torch.autograd.Function):  # type: ignore[misc]  # as Module
    """Autograd function of a :class:`Module`; arguments are the module, its inputs, its input tensors (None for events), and parameters."""

    @staticmethod
    def forward(ctx: Any, module: Module, given: dict[str, Input], *tensors: torch.Tensor | None) -> torch.Tensor:
        ctx.module, ctx.names = module, list(given)
        ctx.events = {name: value for name, value in given.items() if isinstance(value, Events)}
        with module._in_torch_stream():
            ctx.masks = module._drawn if module.training else None
            module._drawn += module.training
            values = dict(zip(module._places, tensors[len(given) :], strict=True))
            # In train() mode, running statistics change after each forward pass, and the backward pass does not read them.
            unread = module._norms.running if module._norms is not None and module.training else frozenset()
            ctx.save_for_backward(*tensors[: len(given)], *(None if name in unread else value for name, value in values.items()))
            output = module._run(given, values, ctx.masks, first=True)
            ctx.run = module._runs
        return output

    @staticmethod
    def backward(ctx: Any, *adjoints: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        module, tensors = ctx.module, ctx.saved_tensors
        (adjoint,) = adjoints
        given = {name: ctx.events.get(name, tensor) for name, tensor in zip(ctx.names, tensors[: len(ctx.names)], strict=True)}
        with module._in_torch_stream():
            if module._runs != ctx.run:
                values = dict(zip(module._places, tensors[len(given) :], strict=True))
                module._run(given, {name: value for name, value in values.items() if value is not None}, ctx.masks, first=False)
            gradients, of_inputs = module._go_back(adjoint, adjoint.shape[0], adjoint.shape[1])
        inputs = (of_inputs.get(name) if needed else None for name, needed in zip(given, ctx.needs_input_grad[2:], strict=False))
        return (None, None, *inputs, *(gradients.get(name) for name in module._places))
