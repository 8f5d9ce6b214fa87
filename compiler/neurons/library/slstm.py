"""Spiking and non-spiking LSTM cells."""

from __future__ import annotations

from snnc.compiler.neurons.library.resets import Firing, ResetMode
from snnc.compiler.neurons.neuron import NeuronModel, neuron


def SLSTM(  # noqa: N802 - the name of the neuron
    threshold: float = 1.0, *, reset: ResetMode = "none", v_reset: float = 0.0, detach: bool = True, strict: bool = True
) -> NeuronModel:
    """LSTM cell (Hochreiter & Schmidhuber 1997, gates as in PyTorch) whose hidden state fires: snnTorch's ``SLSTM``.

    ::

        r    = H(mem - threshold), detached
        syn' = sigmoid(f) syn + sigmoid(i) tanh(g)
        mem' = sigmoid(o) tanh(syn')              and reset by r
        s    = H(mem' - threshold)

    The four input ports ``i f g o`` are the gates before their nonlinearities: each receives a dense connection
    from the input, and one with delay 1 from the port ``mem`` of the cells.

    Parameters
    ----------
    threshold
        Hidden state above which the cell fires.
    v_reset
        ``mem`` after a reset, for ``reset="value"``.
    reset, detach, strict
        As in :class:`~snnc.compiler.neurons.library.resets.Firing`; the reset is always delayed and acts on ``mem`` only.
    """
    firing = Firing(reset, True, detach, strict, input_kept=False)
    defaults = {"threshold": threshold, "v_reset": v_reset}
    return neuron(
        "SLSTM",
        inputs=("i", "f", "g", "o"),
        states={"syn": 0.0, "mem": 0.0},
        params={name: defaults[name] for name in firing.parameters},
        equations="syn = sigmoid(f)*syn + sigmoid(i)*tanh(g)\n" + firing.equations(lambda _: "sigmoid(o)*tanh(syn)", "mem"),
    )


def LSTM() -> NeuronModel:  # noqa: N802 - the name of the neuron
    """LSTM cell (Hochreiter & Schmidhuber 1997, gates as in PyTorch); with convolutions as connections a ConvLSTM (Shi et al. 2015).

    ::

        c' = sigmoid(f) c + sigmoid(i) tanh(g)
        h' = sigmoid(o) tanh(c')

    The four input ports are as in :func:`SLSTM`; the recurrent connections read the port ``h``.
    """
    return neuron(
        "LSTM",
        inputs=("i", "f", "g", "o"),
        states={"c": 0.0, "h": 0.0},
        equations="c = sigmoid(f)*c + sigmoid(i)*tanh(g)\nh = sigmoid(o)*tanh(c)",
        output="h",
    )
