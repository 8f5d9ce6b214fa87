"""Turn modules that store or return their neurons' states into functions of a whole sequence.

Neurons of SpikingJelly, and of snnTorch if no membrane potential is passed, store their states as attributes between calls (SpikingJelly's
have an attribute ``_memories``, by which this module recognises them). Norse's cells
return their states, and start from rest if no state is passed. A module whose neurons run one step per call is exported as :data:`STEPS`
calls, from rest, and its states are carried over. A module that loops over time itself is only reset before the call.
"""

from __future__ import annotations

import copy
import inspect
import warnings
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from snnc.frontends.onnx.writer.errors import HiddenStateExampleError, StateLostError, TorchExportError, TorchFunctionError
from snnc.frontends.torch.autograd_functions import watching_functions
from snnc.frontends.torch.exporting import first_line, require_torch
from snnc.frontends.torch.marking import marking, needing_gradients

STEPS: Final = 5
"""Number of steps with which a single-step module is exported: enough to recognise how a step repeats."""


def private_copy(module: Any) -> Any:
    """Return a copy of a module, at rest and in ``eval()`` mode, even if states stored in `module` require gradients."""
    copied = _copy_of(module).eval()
    reset_states(copied)
    return copied


def _copy_of(module: Any) -> Any:
    """Return a deep copy; tensors computed under autograd, which PyTorch cannot copy, are detached."""
    torch = require_torch()
    memo: dict[int, Any] = {}
    for part in module.modules():
        values = [*vars(part).values(), *part._buffers.values(), *getattr(part, "_memories", {}).values()]
        for value in torch.utils._pytree.tree_leaves(values):
            if isinstance(value, torch.Tensor) and not value.is_leaf:
                memo[id(value)] = value.detach().clone()
    return copy.deepcopy(module, memo)


def reset_states(module: Any) -> None:
    """Reset the states stored in a module to their values before the first step, with the functions of its framework."""
    for part in module.modules():
        if hasattr(part, "_memories"):
            part.reset()
        elif _is_snntorch(part) and hasattr(part, "reset_mem"):
            part.reset_mem()


@dataclass(frozen=True)
class CallPattern:
    """How to call a module: `each_step` for once per step, `passes_state` for passing the returned state to the next call."""

    each_step: bool = False
    passes_state: bool = False


def find_call_pattern(module: Any, arguments: tuple[Any, ...], title: str) -> CallPattern:
    """Run `module`, a private copy, on the example, and derive its call pattern from the number of calls of its neurons.

    For a module that is a single step, raises a HiddenStateExampleError if the example has no time axis before the batch axis, and a
    StateLostError if the module neither stores its states nor accepts and returns them. Raises a TorchExportError if the module fails on
    the example, and a call with one step of it fails, too, or loses the states.
    """
    neurons = [part for part in module.modules() if _is_single_step_neuron(part)]
    run = _watched(module, neurons, arguments)
    failure = run.failure
    if run.failure is not None:
        step = _watched(module, neurons, tuple(a[0] for a in arguments)) if neurons and _are_sequences(arguments) else run
        if step.failure is not None:
            raise TorchExportError(f"{title} does not run on the example: {first_line(run.failure)}")
        run = step
    if not run.calls or any(number > 1 for number in run.calls.values()):
        return CallPattern()
    passes_state = _accepts_state(module)
    outside = [part for part in neurons if id(part) in run.calls and (id(part) in run.given_states or not _stores_state(part))]
    if len(arguments) > 1 and (outside or passes_state):
        return CallPattern()  # the states are among the arguments
    if outside and not passes_state and failure is not None:
        raise TorchExportError(
            f"{title} does not run on the example: {first_line(failure)}. It runs on one step of it, but keeps no state for the next step."
        )
    if outside and not passes_state:
        names = ", ".join(sorted({type(part).__name__ for part in outside}))
        raise StateLostError(
            f"{title} calls its neurons ({names}) once and keeps no state for the next step. If forward is one step, make it accept the "
            "states as arguments and return them, and include them in the example; if it loops over time, give an example of at least 2 "
            "steps."
        )
    _check_example(arguments, title)
    return CallPattern(True, passes_state)


@dataclass(frozen=True)
class _Run:
    """Observations of one call: the number of calls of each neuron, and the neurons that were given states."""

    failure: Exception | None
    calls: Mapping[int, int]
    given_states: frozenset[int]


def _watched(module: Any, neurons: list[Any], arguments: tuple[Any, ...]) -> _Run:
    """Call the module once, and count the calls of its single-step `neurons`."""
    torch = require_torch()
    calls, given_states = Counter[int](), set[int]()

    def count(part: Any, positional: Any, named: Any) -> None:
        calls[id(part)] += 1
        if len([a for a in (*positional, *named.values()) if a is not None]) > 1:
            given_states.add(id(part))

    hooks = [part.register_forward_pre_hook(count, with_kwargs=True) for part in neurons]
    failure = None
    try:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            module(*arguments)
    except Exception as error:  # the user's own code
        failure = error
    finally:
        for hook in hooks:
            hook.remove()
        reset_states(module)
    return _Run(failure, calls, frozenset(given_states))


def _are_sequences(arguments: tuple[Any, ...]) -> bool:
    return all(getattr(a, "ndim", 0) > 2 for a in arguments)


def _check_example(arguments: tuple[Any, ...], title: str) -> None:
    for argument in arguments:
        if not _are_sequences((argument,)):
            raise HiddenStateExampleError(
                f"{title} runs one step per call and stores its states internally; give a sequence as the example, [steps, batch, ...], "
                f"not of shape {list(getattr(argument, 'shape', []))}: snnc calls it once per step."
            )


def _accepts_state(module: Any) -> bool:
    """Return whether ``forward`` has an optional second argument for the state, like Norse's modules."""
    second = list(inspect.signature(module.forward).parameters.values())[1:2]
    return bool(second) and second[0].default is None and second[0].name in ("state", "states", "hidden")


def _is_snntorch(part: Any) -> bool:
    return any(kind.__module__.startswith("snntorch.") and kind.__name__ == "SpikingNeuron" for kind in type(part).__mro__)


def _is_single_step_neuron(part: Any) -> bool:
    """Return whether `part` is a neuron that runs one step per call."""
    if hasattr(part, "_memories"):
        inner = (child for child in part.modules() if child is not part)
        return bool(part.step_mode == "s") and not any(hasattr(child, "_memories") for child in inner)
    norse = any(kind.__module__.startswith("norse.torch.module.") for kind in type(part).__mro__)
    return _is_snntorch(part) or (norse and type(part).__name__.endswith("Cell"))


def _stores_state(part: Any) -> bool:
    """Return whether a neuron stores its state as an attribute if none is passed."""
    return hasattr(part, "_memories") or _is_snntorch(part)


def sequence_module(module: Any, pattern: CallPattern, arguments: tuple[Any, ...]) -> Any:
    """Return a PyTorch module that runs `module` from rest, once per step if it is a single-step module.

    Its arguments and results are tensors: the leaves of the nested arguments and results of `module`.
    """
    torch = require_torch()
    tree = torch.utils._pytree
    structure = tree.tree_flatten(arguments)[1]

    base: Any = torch.nn.Module

    class Sequence(base):  # type: ignore[misc]  # PyTorch may not be installed when types are checked
        def __init__(self) -> None:
            super().__init__()
            self.module = module

        def forward(self, *leaves: Any) -> Any:
            reset_states(self.module)
            leaves = needing_gradients(leaves)
            nested = tree.tree_unflatten(list(leaves), structure)
            with marking(self.module, leaves):
                results = _each_step(torch, self.module, nested, pattern) if pattern.each_step else self.module(*nested)
            flat = tuple(leaf for leaf in tree.tree_leaves(results) if isinstance(leaf, torch.Tensor))
            return flat if len(flat) > 1 else flat[0]

    return Sequence()


def _each_step(torch: Any, module: Any, arguments: tuple[Any, ...], pattern: CallPattern) -> Any:
    """Call the module once per step, and stack the results."""
    results, state = [], None
    for t in range(arguments[0].shape[0]):
        step = [a[t] for a in arguments]
        if pattern.passes_state:
            result, state = module(*step, state)
        else:
            result = module(*step)
        results.append(result)
    return torch.utils._pytree.tree_map(lambda *steps: torch.stack(steps), *results)


def run_example(module: Any, pattern: CallPattern, arguments: tuple[Any, ...]) -> None:
    """Run a module on an example from rest, without gradients, and reset it; raises a TorchExportError if the module fails."""
    torch = require_torch()
    try:
        with torch.no_grad():
            _each_step(torch, module, arguments, pattern) if pattern.each_step else module(*arguments)
    except Exception as error:  # the user's own code
        raise TorchExportError(f"{type(module).__name__} does not run on the example: {first_line(error)}") from None
    reset_states(module)


def enable_gradients(module: Any, pattern: CallPattern, arguments: tuple[Any, ...]) -> list[str]:
    """Set neurons whose spikes carry no gradient to training mode, in place; return the names of those that still carry none.

    Some neurons of SpikingJelly omit their surrogate after ``eval()``; training mode does not change their values.
    """
    without_gradient = _neurons_without_gradient(module, pattern, arguments)
    for name in without_gradient:
        module.get_submodule(name).training = True
    return _neurons_without_gradient(module, pattern, arguments) if without_gradient else []


def _neurons_without_gradient(module: Any, pattern: CallPattern, arguments: tuple[Any, ...]) -> list[str]:
    """Return the names of neurons whose output requires no gradient although their input does."""
    torch = require_torch()
    tree = torch.utils._pytree
    module = _copy_of(module)  # a run under autograd leaves tensors with gradients in the module
    without_gradient: list[str] = []

    def needs(values: Any) -> bool:
        return any(isinstance(v, torch.Tensor) and v.requires_grad for v in tree.tree_leaves(values))

    def check_output(name: str, part: Any, inputs: Any, output: Any) -> None:
        if needs(inputs) and not needs(output) and name not in without_gradient:
            without_gradient.append(name)

    for name, part in module.named_modules():
        if hasattr(part, "_memories") or _is_single_step_neuron(part):
            part.register_forward_hook(partial(check_output, name))
    leaves, structure = tree.tree_flatten(arguments)
    nested = tree.tree_unflatten(list(needing_gradients(tuple(leaves))), structure)
    title = type(module).__name__
    try:
        with warnings.catch_warnings(), torch.enable_grad(), watching_functions() as over_time:
            warnings.simplefilter("ignore")
            _each_step(torch, module, nested, pattern) if pattern.each_step else module(*nested)
    except Exception as error:  # the user's own code
        raise TorchExportError(f"{title} fails on the example if its inputs require gradients: {first_line(error)}") from None
    if over_time:
        raise TorchFunctionError(
            f"{title} calls {', '.join(sorted(over_time))}, whose own backward pass passes gradients between steps; snnc "
            "would train it with a different gradient. Use a neuron whose surrogate works step by step."
        )
    return without_gradient


def shortened(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return `arguments` as sequences of :data:`STEPS` steps, repeating their first step."""
    return tuple(a[:1].expand(STEPS, *a.shape[1:]).contiguous() for a in arguments)
