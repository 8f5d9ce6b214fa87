"""Small networks written in Python, one for each feature of networks, with public names of snnc only."""

import numpy as np
import scipy.sparse

import snnc

CLASSES = 4


def _layered(name, model, *, inputs=12, hidden=10, readout=None, kind="spikes", **population):
    """Input, one population that is called ``hidden``, readout."""
    net = snnc.Network(name, seed=3)
    x = net.input(inputs, kind)
    layer = net.population(hidden, model, name="hidden", **population)
    last = net.population(CLASSES, readout or snnc.LI(beta=0.9), name="readout")
    net.connect(x, layer, snnc.Dense(init=snnc.Normal(std=0.5)))
    net.connect(layer, last)
    return net, x, layer, last


def lif():
    return _layered("lif", snnc.LIF(beta=0.9))[0]


def lif_fires():
    """Spikes are put out; inputs are values."""
    return _layered("lif_fires", snnc.LIF(beta=0.9), readout=snnc.LIF(beta=0.8), kind="values")[0]


def integrate_and_fire():
    return _layered("integrate_and_fire", snnc.IF(), readout=snnc.I())[0]


def cuba():
    return _layered("cuba", snnc.CubaLIF(), learnable=tuple(snnc.CubaLIF().parameters))[0]


def alif():
    return _layered("alif", snnc.ALIF())[0]


def alpha():
    return _layered("alpha", snnc.Alpha())[0]


def lapicque():
    return _layered("lapicque", snnc.Lapicque())[0]


def slstm():
    net = snnc.Network("slstm", seed=3)
    x = net.input(6, "values")
    hidden = net.population(5, snnc.SLSTM(), name="hidden")
    readout = net.population(CLASSES, snnc.LI(beta=0.9), name="readout")
    for port in snnc.SLSTM().inputs:
        net.connect(x, hidden, target_port=port)
        net.connect(hidden, hidden, snnc.Dense(bias=False), delay=1, source_port="mem", target_port=port)
    net.connect(hidden, readout)
    return net


def own_equations():
    """A neuron whose adjoint has products, quotients and functions."""
    model = snnc.Neuron(
        "adaptive",
        inputs="i",
        states={"v": 0, "b": 0},
        params={"beta": 0.9, "rho": 0.97, "kappa": 1.8},
        equations="""
            z = spike(v - 1 - kappa*b)
            b = rho*b + (1 - rho)*z
            v = beta*v + tanh(i)/(1 + 3*i*i) - detach(z)
            s = spike(v - 1 - kappa*b)
        """,
        output="s",
    )
    return _layered("own_equations", model, learnable=("beta", "kappa"))[0]


def given_parameters():
    """A number for each neuron, initial states, a surrogate of its own, learned parameters."""
    beta = np.linspace(0.7, 0.95, 10, dtype=np.float32)
    return _layered(
        "given_parameters",
        snnc.LIF(beta=0.9),
        parameters={"beta": beta, "threshold": 0.8},
        initial={"v": 0.25},
        learnable=("beta", "threshold"),
        surrogate=snnc.Surrogate("fast_sigmoid:10"),
    )[0]


def recurrent():
    net, _, hidden, _ = _layered("recurrent", snnc.LIF(beta=0.9))
    net.connect(hidden, hidden, snnc.Dense(bias=False), delay=1)
    return net


def feedback():
    """A loop over two populations, a skip, one population that reads another's membrane."""
    net, x, hidden, readout = _layered("feedback", snnc.LIF(beta=0.9), readout=snnc.LIF(beta=0.8))
    net.connect(readout, hidden, delay=1)
    net.connect(x, readout)
    net.connect(hidden, readout, delay=2, source_port="v")
    net.output(readout)
    return net


def delayed():
    """A delay for each weight."""
    net, _, hidden, readout = _layered("delayed", snnc.LIF(beta=0.9))
    net.connect(hidden, readout, snnc.Dense(bias=False, delays=snnc.UniformDelay(1, 4)))
    return net


def deep():
    """Five layers, so that the wavefront is long."""
    layers = [part for width in (14, 9, 16, 11) for part in (snnc.Dense(width), snnc.LIF(beta=0.9))]
    return snnc.Sequential(12, *layers, snnc.Dense(CLASSES), snnc.LI(beta=0.9), name="deep", seed=3)


def sparse():
    """Sparse weights by density, by number of sources and by matrix; one is frozen."""
    net = snnc.Network("sparse", seed=3)
    x = net.input(20)
    hidden = net.population(30, snnc.LIF(beta=0.9), name="hidden")
    second = net.population(12, snnc.LIF(beta=0.8), name="second")
    readout = net.population(CLASSES, snnc.LI(beta=0.9), name="readout")
    matrix = scipy.sparse.csr_array(np.eye(12, 30, dtype=np.float32) + np.eye(12, 30, 7, dtype=np.float32))
    net.connect(x, hidden, snnc.Sparse(density=0.2, bias=True, seed=1))
    net.connect(hidden, hidden, snnc.Sparse(fan_in=3, init=snnc.LogNormal(), seed=2), delay=1)
    net.connect(hidden, second, snnc.Sparse(matrix, learnable=False))
    net.connect(second, readout)
    return net


def sparse_delays():
    net = snnc.Network("sparse_delays", seed=3)
    x = net.input(16)
    hidden = net.population(20, snnc.LIF(beta=0.9), name="hidden")
    readout = net.population(CLASSES, snnc.LI(beta=0.9), name="readout")
    net.connect(x, hidden, snnc.Sparse(density=0.3, seed=1))
    net.connect(hidden, hidden, snnc.Sparse(density=0.15, seed=2, delays=snnc.UniformDelay(1, 3)))
    net.connect(hidden, readout)
    return net


def convolution():
    return snnc.Sequential(
        (2, 8, 8), snnc.Conv(4, 3), snnc.LIF(beta=0.9), snnc.MaxPool(2), snnc.Dense(CLASSES), snnc.LI(beta=0.9), name="convolution", seed=3
    )


def convolutions():
    """Strides, padding, groups, averages, a convolutional loop."""
    net = snnc.Network("convolutions", seed=3)
    node = net.input((2, 8, 8))
    layers = (
        [snnc.Conv(4, 3, padding="same", groups=2)],
        [snnc.AvgPool(2), snnc.Conv(6, 2, stride=2, bias=False)],
    )
    for number, layer in enumerate(layers):
        before, node = node, net.population(net.shape_after(node, layer), snnc.LIF(beta=0.9, threshold=0.5), name=f"layer{number}")
        net.connect(before, node, layer)
        if number == 0:
            net.connect(node, node, snnc.Conv(4, 3, padding=1, groups=4, bias=False), delay=1)
    net.connect(node, net.population(CLASSES, snnc.LI(beta=0.9), name="readout"), snnc.Dense())
    return net


def convolution_in_time():
    """One dimension, dilation, sums of windows."""
    return snnc.Sequential(
        (3, 16),
        snnc.Conv(4, 3, dilation=2),
        snnc.LIF(beta=0.9),
        snnc.SumPool(3, stride=2),
        snnc.Dense(CLASSES),
        snnc.LI(beta=0.9),
        name="convolution_in_time",
        kind="values",
        seed=3,
    )


def several_inputs():
    """Spikes and values come in; three outputs, each read out in another way."""
    net = snnc.Network("several_inputs", seed=3)
    events, values = net.input(8, name="events"), net.input((2, 3), "values", name="values")
    left = net.population(9, snnc.LIF(beta=0.9), name="left")
    right = net.population(7, snnc.ALIF(), name="right")
    readout = net.population(CLASSES, snnc.LI(beta=0.9), name="readout")
    net.connect(events, left)
    net.connect(values, right, [snnc.Flatten(), snnc.Dense(7)])
    net.connect(left, right)
    net.connect(left, readout)
    net.connect(right, readout)
    net.output(readout, name="classes")
    net.output(left, readout="sum", name="counts")
    net.output(right, port="v", readout="last", name="membrane")
    return net


def groups():
    """A group as source and as target, and parts of populations."""
    net = snnc.Network("groups", seed=3)
    x = net.input(10)
    exciting = net.population(16, snnc.LIF(beta=0.9), name="exciting")
    inhibiting = net.population(6, snnc.LIF(beta=0.8), name="inhibiting")
    readout = net.population(CLASSES, snnc.LI(beta=0.9), name="readout")
    both = net.group(exciting, inhibiting, name="cortex")
    net.connect(x, both)
    net.connect(both, exciting[:8], snnc.Sparse(density=0.2, seed=1), delay=1)
    net.connect(exciting[4:], readout)
    return net


def one_to_one():
    net, _, hidden, _ = _layered("one_to_one", snnc.LIF(beta=0.9))
    net.connect(hidden, hidden, snnc.OneToOne(np.linspace(-0.5, 0.5, 10, dtype=np.float32), learnable=True), delay=1)
    net.connect(hidden, hidden, snnc.OneToOne(-0.1), delay=2)
    return net


def frozen():
    """No weight of the first layer learns; names of the user that are no names of C."""
    net = snnc.Network('frozen "net" \\ ünï', seed=3)
    x = net.input(12, name="in put")
    hidden = net.population(10, snnc.LIF(beta=0.9), name="int main() {")
    readout = net.population(CLASSES, snnc.LI(beta=0.9), name="*/ class")
    net.connect(x, hidden, snnc.Dense(learnable=False), name="a/b")
    net.connect(hidden, readout)
    return net


def initialisers():
    """Every way to draw weights but the one that calls LAPACK."""
    kinds = ("FanIn", "Uniform", "Normal", "TruncatedNormal", "XavierUniform", "XavierNormal", "KaimingUniform", "KaimingNormal")
    layers = [part for kind in kinds for part in (snnc.Dense(6, init=getattr(snnc, kind)()), snnc.LIF(beta=0.9))]
    return snnc.Sequential(5, *layers, snnc.Dense(CLASSES, init=snnc.Constant(0.1)), snnc.LI(beta=0.9), name="initialisers", seed=3)


def wide():
    """Large enough that several tiles share a population, with replicas over samples."""
    net = snnc.Network("wide", seed=3)
    x = net.input(64)
    hidden = net.population(128, snnc.LIF(beta=0.9), name="hidden")
    readout = net.population(10, snnc.LI(beta=0.9), name="readout")
    net.connect(x, hidden)
    net.connect(hidden, hidden, snnc.Dense(bias=False), delay=1)
    net.connect(hidden, readout)
    return net


NETS = {
    net.__name__: net
    for net in (
        lif,
        lif_fires,
        integrate_and_fire,
        cuba,
        alif,
        alpha,
        lapicque,
        slstm,
        own_equations,
        given_parameters,
        recurrent,
        feedback,
        delayed,
        deep,
        sparse,
        sparse_delays,
        convolution,
        convolutions,
        convolution_in_time,
        several_inputs,
        groups,
        one_to_one,
        frozen,
        initialisers,
        wide,
    )
}
