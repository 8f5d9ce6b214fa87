"""Check the types of options: refuse, for example, a loss that is a function or an optimiser that is a class."""

from __future__ import annotations

from snnc.compiler.losses import Loss, parse_loss
from snnc.compiler.losses.optimizers import SGD, Adam, AdamW, Optimizer, RMSprop
from snnc.compiler.neurons.surrogates.library import parse_surrogate
from snnc.compiler.neurons.surrogates.surrogate import Surrogate
from snnc.errors import OptionKindError


def loss_of(loss: object) -> Loss | None:
    """Return a loss given as an object, by name or not at all; raise OptionKindError for a function, a PyTorch module or a class."""
    if loss is None or isinstance(loss, str):
        return None if loss is None else parse_loss(loss)
    methods = ("value_and_gradient", "scores")
    if not isinstance(loss, type) and isinstance(getattr(loss, "name", None), str) and all(hasattr(loss, m) for m in methods):
        return loss  # type: ignore[return-value]  # a protocol
    raise OptionKindError(
        f"loss is {_kind(loss)}, but the loss is compiled into the program: give a name, such as 'ce_count' or 'mse_count', or "
        "snnc.losses.CrossEntropy('count'), snnc.losses.SquaredError('rate'). To use a PyTorch loss, train an snnc.torch.Module."
    )


def optimizer_of(optimizer: object) -> str | Optimizer | None:
    """Return `optimizer`; raise OptionKindError unless it is an optimiser of snnc, a text or None."""
    if optimizer is None or isinstance(optimizer, str | SGD | Adam | AdamW | RMSprop):
        return optimizer
    raise OptionKindError(
        f"optimizer is {_kind(optimizer)}; give snnc.Adam(0.001), snnc.SGD(0.01, momentum=0.9), or a text such as 'adam:0.001'. To use a "
        "PyTorch optimiser, train an snnc.torch.Module."
    )


def surrogate_of(surrogate: object) -> Surrogate | None:
    """Return a surrogate given as an object, by name or not at all; raise OptionKindError for anything else, such as a function."""
    if surrogate is None or isinstance(surrogate, Surrogate):
        return surrogate
    if isinstance(surrogate, str):
        return parse_surrogate(surrogate)
    raise OptionKindError(
        f"surrogate is {_kind(surrogate)}; give its name, such as 'atan' or 'fast_sigmoid:25', or its derivative in x as text: "
        "'custom:1/(1 + x*x)'."
    )


def target_of(target: object) -> str:
    """Return the name of a target, or the path of its file; raise OptionKindError unless it is a text or a path."""
    if isinstance(target, str) or hasattr(target, "__fspath__"):
        return str(target)
    raise OptionKindError(f"target is {_kind(target)}; give a target of snnc, such as 'cpu' or 'gc200', or the path of a TOML file.")


def _kind(value: object) -> str:
    if isinstance(value, type):
        return f"the class {value.__name__} instead of an instance"
    name = getattr(value, "__name__", None)
    if callable(value) and isinstance(name, str):
        return f"the function {name}"
    text, kind = repr(value), type(value).__name__
    article = "an" if kind[:1].lower() in "aeiou" else "a"
    return f"{article} {kind}" if len(text) > 30 else f"{text} ({article} {kind})"
