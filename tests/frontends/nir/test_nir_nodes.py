"""The result of each NIR node in one forward-Euler step."""

import nir
import numpy as np
import pytest
import torch
from nir_files import RNG, chain, edit, full, lif, linear, replace, write

import snnc
from snnc.compiler.ir.graph import Conv, Flatten, Linear, OneToOne, Population, Reshape
from snnc.frontends.nir import load_nir

DT = 1e-3


def run(graph, x):
    with snnc.compile(graph, target="reference", steps=len(x), batch=1) as session:
        return next(iter(session.run(x[:, None].astype(np.float32)).values()))[:, 0]


def output(tmp_path, x, *nodes, outputs=None, dt=DT, **options):
    nodes, edges = chain(*nodes, inputs=x.shape[1:], outputs=outputs or x.shape[1:])
    return run(load_nir(write(tmp_path / "m.nir", nodes, edges), dt=dt, **options), x)


def signal(*shape):
    return RNG.normal(0.5, 1, shape).astype(np.float32)


def euler(x, *, tau=None, r=1.0, leak=0.0, threshold=None, reset=0.0, tau_syn=None, w_in=1.0, dt=DT):
    """The words of the standard, in float64."""
    v, syn, found = np.zeros(x.shape[1]), np.zeros(x.shape[1]), []
    for current in x.astype(np.float64):
        i = current
        if tau_syn is not None:
            syn = i = syn + dt / tau_syn * (-syn + w_in * i)
        v = v + (dt * r * i if tau is None else dt / tau * (leak - v + r * i))
        found.append(v.copy() if threshold is None else (v > threshold).astype(float))
        if threshold is not None:
            v = np.where(v > threshold, reset, v)
    return np.array(found)


PER_NEURON = np.array([0.004, 0.01, 0.02], np.float32)


def test_integrator(tmp_path):
    x = signal(20, 3)
    r = np.array([100.0, 500.0, 1000.0], np.float32)
    np.testing.assert_allclose(output(tmp_path, x, nir.I(r)), euler(x, r=r), rtol=1e-4, atol=1e-4)


def test_integrate_and_fire(tmp_path):
    x = signal(30, 3)
    reset = np.array([0.0, -0.5, 0.2], np.float32)
    node = nir.IF(r=full(3, 300), v_threshold=full(3, 1.0), v_reset=reset)
    np.testing.assert_array_equal(output(tmp_path, x, node), euler(x, r=300, threshold=1.0, reset=reset))


def test_leaky_integrator(tmp_path):
    x, leak = signal(20, 3), np.array([0.1, -0.2, 0.0], np.float32)
    found = output(tmp_path, x, nir.LI(tau=PER_NEURON, r=full(3, 2.0), v_leak=leak))
    np.testing.assert_allclose(found, euler(x, tau=PER_NEURON, r=2.0, leak=leak), rtol=1e-4, atol=1e-4)


def test_leaky_integrate_and_fire(tmp_path):
    x = signal(40, 3)
    node = lif(tau=0.01, r=5.0, leak=0.1, threshold=0.8, reset=-0.3)
    node.tau = PER_NEURON
    np.testing.assert_array_equal(output(tmp_path, x, node), euler(x, tau=PER_NEURON, r=5.0, leak=0.1, threshold=0.8, reset=-0.3))


def test_current_based_neurons(tmp_path):
    x = signal(40, 3)
    common = {"tau_syn": full(3, 0.005), "tau_mem": PER_NEURON, "r": full(3, 3.0), "v_leak": full(3, 0.05), "w_in": full(3, 2.0)}
    words = {"tau": PER_NEURON, "r": 3.0, "leak": 0.05, "tau_syn": 0.005, "w_in": 2.0}
    np.testing.assert_allclose(output(tmp_path, x, nir.CubaLI(**common)), euler(x, **words), rtol=1e-4, atol=1e-4)
    firing = nir.CubaLIF(**common, v_threshold=full(3, 0.7), v_reset=full(3, 0.1))
    np.testing.assert_array_equal(output(tmp_path, x, firing), euler(x, threshold=0.7, reset=0.1, **words))


def test_one_value_stands_for_all_neurons(tmp_path):
    x = signal(20, 3)
    scalar = lif(n=1, r=8.0)
    np.testing.assert_array_equal(output(tmp_path, x, scalar), euler(x, tau=0.01, r=8.0, threshold=1.0))

    def without_axes(group):
        for field in ("tau", "r", "v_leak", "v_threshold", "v_reset"):
            replace(group["nodes"]["n0"], field, group["nodes"]["n0"][field][0])

    path = edit(write(tmp_path / "m.nir", *chain(scalar, inputs=3)), without_axes)
    np.testing.assert_array_equal(run(load_nir(path, dt=DT), x), euler(x, tau=0.01, r=8.0, threshold=1.0))


def test_threshold_scale_affine_and_linear(tmp_path):
    x = signal(5, 3)
    scale, level = np.array([1.0, -2.0, 0.5], np.float32), np.array([0.0, 0.5, 1.0], np.float32)
    np.testing.assert_array_equal(output(tmp_path, x, nir.Scale(scale), nir.Threshold(level)), x * scale > level)
    affine, plain = linear(3, 3, bias=True), linear(3, 3)
    found = output(tmp_path, x, affine, plain)
    np.testing.assert_allclose(found, (x @ affine.weight.T + affine.bias) @ plain.weight.T, rtol=1e-4, atol=1e-5)


def test_delays_are_rounded_to_steps_and_say_so(tmp_path):
    x = signal(8, 3)
    nodes, edges = chain(nir.Delay(np.array([0.0, 0.001, 0.0034])), inputs=3)
    graph = load_nir(write(tmp_path / "m.nir", nodes, edges), dt=DT)
    found = run(graph, x)
    for k, steps in enumerate((0, 1, 3)):
        np.testing.assert_array_equal(found[:, k], np.concatenate([np.zeros(steps), x[: 8 - steps, k]]))
    assert any("rounded" in text for text in graph.assumptions)


def test_a_delay_shared_by_all_is_the_delay_of_an_edge(tmp_path):
    nodes, edges = chain(lif(), nir.Delay(full(3, 0.002)), linear(3, 3), inputs=3)
    graph = load_nir(write(tmp_path / "m.nir", nodes, edges), dt=DT)
    assert [(e.source, e.target, e.delay) for e in graph.edges if e.delay] == [("n0", "n2", 2)]


@pytest.mark.filterwarnings("ignore:Using padding='same'")
@pytest.mark.parametrize(("padding", "stride", "groups"), [(1, 1, 1), ((1, 0), (2, 1), 2), ("same", 1, 1), ("valid", 1, 2)])
def test_convolution_in_two_dimensions(tmp_path, padding, stride, groups):
    x = signal(3, 4, 6, 7)
    weight, bias = RNG.normal(0, 1, (6, 4 // groups, 3, 2)).astype(np.float32), RNG.normal(0, 1, 6).astype(np.float32)
    wanted = torch.nn.functional.conv2d(torch.tensor(x), torch.tensor(weight), torch.tensor(bias), stride, padding, 1, groups).numpy()
    found = output(tmp_path, x, nir.Conv2d((6, 7), weight, stride, padding, 1, groups, bias), outputs=wanted.shape[1:])
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


def test_convolution_in_one_dimension(tmp_path):
    x = signal(3, 2, 9)
    weight, bias = RNG.normal(0, 1, (4, 2, 3)).astype(np.float32), RNG.normal(0, 1, 4).astype(np.float32)
    wanted = torch.nn.functional.conv1d(torch.tensor(x), torch.tensor(weight), torch.tensor(bias), 2, 1, 2).numpy()
    found = output(tmp_path, x, nir.Conv1d(9, weight, 2, 1, 2, 1, bias), outputs=wanted.shape[1:])
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", [nir.SumPool2d, nir.AvgPool2d])
def test_pooling(tmp_path, kind):
    x = signal(3, 2, 6, 6)
    wanted = torch.nn.functional.avg_pool2d(torch.tensor(x), (2, 3), (2, 1), (1, 0)).numpy() * (6 if kind is nir.SumPool2d else 1)
    found = output(tmp_path, x, kind(np.array([2, 3]), np.array([2, 1]), np.array([1, 0])), outputs=wanted.shape[1:])
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


def test_flatten_joins_the_axes_it_names(tmp_path):
    for first, last, kind, shape in ((0, -1, Flatten, (24,)), (1, 2, Reshape, (2, 12)), (0, 1, Reshape, (6, 4))):
        nodes, edges = chain(nir.Flatten({"input": np.array([2, 3, 4])}, first, last), inputs=(2, 3, 4), outputs=shape)
        graph = load_nir(write(tmp_path / "m.nir", nodes, edges))
        assert isinstance(graph.operation("n0"), kind)
        if kind is Reshape:
            assert graph.operation("n0").shape == shape


def test_edges_that_meet_are_summed(tmp_path):
    nodes = {"in": nir.Input(np.array([2])), "a": linear(3, 2), "b": linear(3, 2), "c": linear(2, 3), "out": nir.Output(np.array([2]))}
    edges = [("c", "out"), ("b", "c"), ("a", "c"), ("in", "b"), ("in", "a")]
    x = signal(4, 2)
    found = run(load_nir(write(tmp_path / "m.nir", nodes, edges)), x)
    np.testing.assert_allclose(found, x @ (nodes["a"].weight + nodes["b"].weight).T @ nodes["c"].weight.T, rtol=1e-4, atol=1e-5)


def recurrent(bias):
    nodes = {"in": nir.Input(np.array([3])), "lif": lif(r=8.0), "w": linear(3, 3, bias=bias), "out": nir.Output(np.array([3]))}
    return nodes, [("in", "lif"), ("lif", "w"), ("w", "lif"), ("lif", "out")]


def test_a_cycle_reads_the_step_before_and_the_bias_acts_from_the_start(tmp_path):
    nodes, edges = recurrent(bias=True)
    graph = load_nir(write(tmp_path / "m.nir", nodes, edges), dt=DT)
    assert [(e.source, e.target, e.delay) for e in graph.edges if e.delay] == [("lif", "w", 1)]
    x, v, spikes, wanted = signal(20, 3), np.zeros(3), np.zeros(3), []
    for i in x:
        v = v + 0.1 * (-v + 8.0 * (i + spikes @ nodes["w"].weight.T + nodes["w"].bias))
        spikes = (v > 1).astype(float)
        v = np.where(v > 1, 0, v)
        wanted.append(spikes)
    np.testing.assert_array_equal(run(graph, x), wanted)
    assert any("lif -> w" in text for text in graph.assumptions)


def test_a_delay_in_a_cycle_is_the_only_one(tmp_path):
    nodes, edges = recurrent(bias=False)
    nodes["d"] = nir.Delay(full(3, 0.003))
    edges = [e for e in edges if e != ("w", "lif")] + [("w", "d"), ("d", "lif")]
    graph = load_nir(write(tmp_path / "m.nir", nodes, edges), dt=DT)
    assert [(e.source, e.target, e.delay) for e in graph.edges if e.delay] == [("w", "lif", 3)]


def test_the_order_of_edges_changes_nothing(tmp_path):
    nodes, edges = recurrent(bias=True)
    x = signal(10, 3)
    found = [run(load_nir(write(tmp_path / "m.nir", nodes, e), dt=DT), x) for e in (edges, edges[::-1], edges[2:] + edges[:2])]
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


def test_nested_graphs_are_inlined(tmp_path):
    inner = nir.NIRGraph(*chain(linear(3, 3), lif(), inputs=3), type_check=False)
    outer = nir.NIRGraph(*chain(inner, inputs=3), type_check=False)
    nodes, edges = chain(linear(3, 2), outer, inputs=2, outputs=3)
    graph = load_nir(write(tmp_path / "m.nir", nodes, edges))
    assert set(graph.names) == {"input", "n0", "n1.n0.n0", "n1.n0.n1", "output"}
    assert isinstance(graph.operation("n1.n0.n0"), Linear)


def test_missing_ends_are_added_as_the_nir_package_does(tmp_path):
    nodes = {"fc": linear(3, 2), "lif": lif()}
    graph = load_nir(write(tmp_path / "m.nir", nodes, [("fc", "lif")]))
    assert set(graph.names) == {"input_fc", "fc", "lif", "output_lif"}
    assert sum("as the nir package does" in text for text in graph.assumptions) == 2


def test_arrays_are_read_as_vectors_where_the_file_forgot_to_flatten(tmp_path):
    nodes, edges = chain(linear(3, 8), lif(), inputs=(2, 4), outputs=3)
    graph = load_nir(write(tmp_path / "m.nir", nodes, edges))
    assert any("in the same order" in text for text in graph.assumptions)


def test_dt_comes_from_the_caller_then_the_metadata_then_the_dialect(tmp_path):
    nodes, edges = chain(linear(3, 2), lif(r=3.0), inputs=2, outputs=3)
    path = write(tmp_path / "m.nir", nodes, edges, metadata={"dt": 0.002})
    plain = write(tmp_path / "n.nir", nodes, edges)

    def dt_of(graph):
        return float(graph.operation("n1").parameters["dt"])

    assert [dt_of(load_nir(path)), dt_of(load_nir(path, dt=0.004)), dt_of(load_nir(plain))] == pytest.approx([0.002, 0.004, 1e-4])
    assert any("0.002" in text for text in load_nir(path).assumptions)
    assert any("is assumed" in text for text in load_nir(plain).assumptions)


def test_a_time_constant_shorter_than_a_step_is_pointed_out(tmp_path):
    nodes, edges = chain(linear(3, 2), lif(), inputs=2, outputs=3)
    assert any("forward Euler" in text for text in load_nir(write(tmp_path / "m.nir", nodes, edges), dt=0.02).assumptions)


def test_dialects_differ_in_reset_tie_and_gain(tmp_path):
    x = np.array([[1.0], [1.5], [0.0], [0.0]], np.float32)
    node = nir.LIF(tau=full(1, 2.0), r=full(1, 2.0), v_leak=full(1, 0), v_threshold=full(1, 1.0), v_reset=full(1, 0))
    found = {d: output(tmp_path, x, node, dt=1.0, dialect=d)[:, 0].tolist() for d in ("nir", "snntorch", "norse", "spikingjelly", "spyx")}
    assert found == {
        "nir": [0, 1, 0, 0],
        "norse": [0, 1, 0, 0],
        "spikingjelly": [1, 1, 0, 0],
        "snntorch": [0, 1, 0, 0],
        "spyx": [0, 0, 1, 0],
    }


def test_norse_adds_the_whole_input_to_the_synaptic_current(tmp_path):
    x, tau_syn, tau_mem = signal(30, 3), 5e-6, 1e-5
    node = nir.CubaLIF(*(full(3, v) for v in (tau_syn, tau_mem, 1.0, 0.1, 0.6, 0.0, 1.0)))
    v, i, wanted = np.full(3, 0.1), np.zeros(3), []
    for t in x:  # Norse's LIFCell, which starts at v_leak
        i = i + t
        v = v + 0.1 * (0.1 - v + i)
        i = i - 0.2 * i
        wanted.append((v > 0.6).astype(float))
        v = np.where(v > 0.6, 0, v)
    np.testing.assert_array_equal(output(tmp_path, x, node, dt=None, dialect="norse"), wanted)


def test_parameters_are_numbers_where_all_neurons_share_them(tmp_path):
    node = lif()
    node.tau = PER_NEURON
    nodes, edges = chain(linear(3, 2), node, inputs=2, outputs=3)
    population = load_nir(write(tmp_path / "m.nir", nodes, edges)).operation("n1")
    assert isinstance(population, Population)
    assert {k: v.shape for k, v in population.parameters.items() if v.ndim} == {"tau": (3,)}
    assert population.model.name == "LIF"
    assert population.model.text.startswith("v = v + dt / tau * (v_leak - v + r * i)")


def test_names_with_slashes_are_kept(tmp_path):
    nodes, edges = chain(linear(3, 2), lif(), inputs=2, outputs=3)
    nodes = {"input": nodes["input"], "layer/0": nodes["n0"], "layer/1": nodes["n1"], "output": nodes["output"]}
    edges = [("input", "layer/0"), ("layer/0", "layer/1"), ("layer/1", "output")]
    assert {"layer/0", "layer/1"} < set(load_nir(write(tmp_path / "m.nir", nodes, edges)).names)


def test_weights_learn_and_scales_do_not(tmp_path):
    nodes, edges = chain(nir.Scale(full(2, 2.0)), linear(3, 2), lif(), inputs=2, outputs=3)
    graph = load_nir(write(tmp_path / "m.nir", nodes, edges))
    assert [o.learnable for _, o in graph.of_type(OneToOne, Linear, Conv)] == [False, True]


@pytest.mark.parametrize("kind", ["LIF", "CubaLIF", "IF"])
def test_a_delayed_subtraction_goes_with_any_resistance(tmp_path, kind):
    x, r = signal(30, 3), 0.3 if kind != "IF" else 300.0
    fields = {"r": full(3, r), "v_threshold": full(3, 0.6), "v_reset": full(3, 0.0)}
    if kind == "LIF":
        fields |= {"tau": full(3, 2e-3), "v_leak": full(3, 0.2)}
    if kind == "CubaLIF":
        fields |= {"tau_mem": full(3, 2e-3), "tau_syn": full(3, 2e-3), "v_leak": full(3, 0.2), "w_in": full(3, 3.0)}
    v, syn, wanted = np.zeros(3), np.zeros(3), []
    for current in x.astype(np.float64):
        before = v > 0.6
        syn = syn + 0.5 * (3 * current - syn)
        drive = {"IF": 0.3 * current, "LIF": 0.5 * (0.2 - v + r * current), "CubaLIF": 0.5 * (0.2 - v + r * syn)}[kind]
        v = v + drive - 0.6 * before
        wanted.append(v > 0.6)
    assert np.any(wanted)
    np.testing.assert_array_equal(output(tmp_path, x, getattr(nir, kind)(**fields), dialect="snntorch"), wanted)


def test_spyx_adds_currents_whole_where_neurons_leak_to_another_value_too(tmp_path):
    x, leak, v, wanted = signal(20, 3), np.array([0.3, -0.3, 0.1], np.float32), np.zeros(3), []
    for current in x:
        v = v + 0.1 * (leak - v) + current
        wanted.append(v)
    found = output(tmp_path, x, nir.LI(tau=full(3, 0.01), r=full(3, 7.0), v_leak=leak), dialect="spyx")
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("dialect", "start"), [("nir", 0.0), ("snntorch", 0.0), ("spikingjelly", -0.4), ("norse", 0.2), ("spyx", 0.0)])
def test_membranes_start_where_the_framework_starts_them(tmp_path, dialect, start):
    nodes, edges = chain(lif(leak=0.2, reset=-0.4), inputs=3)
    graph = load_nir(write(tmp_path / "m.nir", nodes, edges), dt=DT, dialect=dialect)
    assert np.asarray(graph.operation("n0").initial.get("v", 0.0)) == np.float32(start)


def test_the_batch_of_1_that_an_exporter_left_in_the_input_is_left_out(tmp_path):
    weight = RNG.normal(0, 1, (4, 2, 3, 3)).astype(np.float32)
    conv = nir.Conv2d((5, 5), weight, 1, 0, 1, 1, np.zeros(4, np.float32))
    for node, shape, left in ((linear(3, 2), (2,), (3,)), (lif(), (3,), (3,)), (conv, (2, 5, 5), (4, 3, 3))):
        nodes, edges = chain(node, inputs=(1, *shape), outputs=(1, *left))
        graph = load_nir(write(tmp_path / "m.nir", nodes, edges))
        assert graph.operation("input").shape == shape
        assert any("batch of 1" in text for text in graph.assumptions)
    for node, shape in ((nir.AvgPool2d(np.array([2, 2]), np.array([1, 1]), np.zeros(2, int)), (1, 4, 4)), (lif(n=(1, 3)), (1, 3))):
        nodes, edges = chain(node, inputs=shape, outputs=(1, 3, 3) if len(shape) == 3 else shape)
        assert load_nir(write(tmp_path / "m.nir", nodes, edges)).operation("input").shape == shape


@pytest.mark.parametrize("names", ["abcd", "dcba"])
def test_neurons_between_convolutions_take_the_axes_that_arrive_whatever_the_order_of_the_file(tmp_path, names):
    first, second = (
        nir.Conv2d(None, RNG.normal(0, 1, s).astype(np.float32), 1, 0, 1, 1, full(s[0], 0.1)) for s in ((3, 2, 2, 2), (2, 3, 2, 2))
    )
    flat = lif(n=3 * 4 * 4)
    nodes = {
        "in": nir.Input(np.array([2, 5, 5])),
        names[0]: first,
        names[1]: flat,
        names[2]: second,
        "out": nir.Output(np.array([2, 3, 3])),
    }

    def without_shapes(group):
        for name in (names[0], names[2]):
            if "input_shape" in group["nodes"][name]:
                del group["nodes"][name]["input_shape"]

    for conv in (first, second):
        conv.input_shape = np.zeros(2, int)
    edges = [("in", names[0]), (names[0], names[1]), (names[1], names[2]), (names[2], "out")]
    graph = load_nir(edit(write(tmp_path / "m.nir", nodes, edges), without_shapes), dt=DT)
    assert graph.operation(names[1]).shape == (3, 4, 4)


def test_a_convolution_without_an_input_tells_its_shape_itself(tmp_path):
    conv = nir.Conv2d((5, 6), RNG.normal(0, 1, (4, 1, 3, 3)).astype(np.float32), 1, 0, 1, 2, full(4, 0.1))
    graph = load_nir(write(tmp_path / "m.nir", {"c": conv, "l": lif(n=(4, 3, 4))}, [("c", "l")]), dt=DT)
    assert graph.operation("input_c").shape == (2, 5, 6)
