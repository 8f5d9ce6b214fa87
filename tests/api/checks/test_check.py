"""``snnc check``: the layer table, readable equations, synaptic operations (maximum and measured), and assumptions."""

import itertools
import json
from pathlib import Path

import nir
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nir_files import lif, linear, write
from printed_equations import computed
from wide import examples

import snnc
from snnc.checks.measure import measure
from snnc.cli import main as cli
from snnc.compiler.ir.graph import Conv, FileLayout, Graph, Input, Linear, OneToOne, Output, Pool, Population, Sparse
from snnc.compiler.neurons.interpret import evaluate
from snnc.compiler.neurons.library import ALIF, IF, LI, LIBRARY, LIF, SLSTM, Alpha, CubaLIF, Lapicque, Threshold
from snnc.understanding.describe import describe
from snnc.understanding.equations import readable
from snnc.understanding.layers import rows
from snnc.understanding.resets import firing
from snnc.understanding.synops import connections, fan_out
from snnc.understanding.table import assumption_lines, to_text

CORPUS = Path(__file__).parents[2] / "corpus"
EXAMPLE = Path(__file__).parents[3] / "examples" / "digits"


# ---- synaptic operations ---------------------------------------------------------------------------------------------


@st.composite
def geometry(draw):
    """A convolution of one or two dimensions and the shape of its input."""
    dimensions, groups = draw(st.integers(1, 2)), draw(st.integers(1, 2))
    inputs, outputs = groups * draw(st.integers(1, 2)), groups * draw(st.integers(1, 2))

    def numbers(low, high):
        return tuple(draw(st.integers(low, high)) for _ in range(dimensions))

    kernel, stride, dilation = numbers(1, 3), numbers(1, 3), numbers(1, 2)
    padding = tuple((draw(st.integers(0, 2)),) * 2 for _ in range(dimensions))
    size = tuple(draw(st.integers((k - 1) * d + 1, 7)) for k, d in zip(kernel, dilation, strict=True))
    weight = np.ones((outputs, inputs // groups, *kernel), np.float32)
    return Conv(weight, None, stride, padding, dilation, groups), (inputs, *size)


@settings(deadline=None, max_examples=examples(20, 60))
@given(geometry())
def test_the_fan_out_of_a_convolution_is_what_pytorch_reads(case):
    torch = pytest.importorskip("torch")
    conv, shape = case
    x = torch.zeros((1, *shape), requires_grad=True)
    run = torch.nn.functional.conv1d if len(shape) == 2 else torch.nn.functional.conv2d
    padding = [before for before, _ in conv.padding]
    run(x, torch.from_numpy(conv.weight), None, conv.stride, padding, conv.dilation, conv.groups).sum().backward()
    wanted = x.grad[0].numpy()
    assert (fan_out("c", conv, shape) == wanted).all()
    assert connections("c", conv, shape) == wanted.sum()


@settings(deadline=None, max_examples=40)
@given(geometry())
def test_the_windows_of_a_pooling_count_what_unfold_finds(case):
    torch = pytest.importorskip("torch")
    conv, shape = case
    if len(shape) == 2:
        return
    pool = Pool("sum", conv.weight.shape[2:], conv.stride, conv.padding, conv.dilation)
    ones = torch.ones((1, *shape))
    found = torch.nn.functional.unfold(ones, pool.kernel, pool.dilation, [before for before, _ in pool.padding], pool.stride)
    assert connections("p", pool, shape) == int(found.sum())


def test_asymmetric_padding_is_counted_where_it_lies():
    conv = Conv(np.ones((1, 1, 3), np.float32), padding=((2, 0),))
    assert fan_out("c", conv, (1, 4)).tolist() == [[3, 3, 2, 1]]
    assert connections("c", conv, (1, 4)) == 9


def mixed():
    """Convolution, pooling, sparse, dense, one to one and recurrent connections with a delay."""
    rng = np.random.default_rng(5)
    graph = Graph("mixed")
    graph.add("x", Input((2, 5, 5), "spikes"))
    graph.add("conv", Conv(rng.normal(0.2, 0.5, (4, 1, 3, 3)).astype(np.float32), None, (2, 2), ((1, 1), (1, 1)), (), 2))
    graph.add("a", Population(LIF(0.8), (4, 3, 3)))
    graph.add("pool", Pool("average", (3, 3)))
    graph.add("readout", Linear(rng.normal(0, 1, (3, 4)).astype(np.float32), np.zeros(3, np.float32)))
    graph.add("b", Population(LIF(0.9), (3,)))
    columns = np.array([0, 5, 35, 5, 7, 9], np.int32)
    graph.add("sparse", Sparse(rng.normal(0.5, 1, 6).astype(np.float32), columns, np.array([0, 3, 5, 6], np.int32), (3, 36)))
    graph.add("flat", snnc_flatten())
    graph.add("loop", Linear(rng.normal(0.3, 1, (3, 3)).astype(np.float32)))
    graph.add("own", OneToOne(np.float32([0.1, 0.2, 0.3])))
    graph.add("out", Output())
    for source, target in [
        ("x", "conv"),
        ("conv", "a"),
        ("a", "pool"),
        ("pool", "flat2"),
        ("a", "flat"),
        ("flat", "sparse"),
        ("sparse", "b"),
    ]:
        if target == "flat2":
            graph.add("flat2", snnc_flatten())
        graph.connect(source, target)
    graph.connect("flat2", "readout")
    graph.connect("readout", "b")
    graph.connect("b", "loop", delay=2)
    graph.connect("loop", "b")
    graph.connect("b", "own", delay=1)
    graph.connect("own", "b")
    graph.connect("b", "out")
    return graph


def snnc_flatten():
    from snnc.compiler.ir.graph import Flatten

    return Flatten()


def convolution_pairs(shape, weight, stride, padding, groups):
    """Every (source, target) pair of a convolution, one by one."""
    outputs, inputs, height, width = weight.shape
    rows_out = (shape[1] + 2 * padding - height) // stride + 1
    columns_out = (shape[2] + 2 * padding - width) // stride + 1
    for o, c, i, j, k, m in itertools.product(*map(range, (outputs, inputs, rows_out, columns_out, height, width))):
        source = (o // (outputs // groups) * inputs + c, i * stride - padding + k, j * stride - padding + m)
        if 0 <= source[1] < shape[1] and 0 <= source[2] < shape[2]:
            yield source


def test_what_is_counted_is_what_loops_count(tmp_path):
    graph = mixed()
    x = (np.random.default_rng(1).random((9, 5, 2, 5, 5)) < 0.4).astype(np.float32)
    probed = graph.copy()
    probed.add("a_out", Output())
    probed.connect("a", "a_out")
    with snnc.compile(probed) as session:
        found = session.run({"x": x})
    a, b = found["a_out"], found["out"]
    assert 0 < a.mean() < 1
    assert 0 < b.mean() < 1
    runs = x.shape[0] * x.shape[1]
    pairs = list(convolution_pairs((2, 5, 5), graph.operation("conv").weight, 2, 1, 2))
    sparse = graph.operation("sparse").indices
    pooled = np.stack([a[..., 0:3, 0:3].sum(axis=(-1, -2))], -1)
    wanted = {
        "conv": (len(pairs), sum(x[(slice(None), slice(None), *p)].sum() for p in pairs) / runs, "AC", "AC"),
        "sparse": (6, sum(a.reshape(*a.shape[:2], -1)[..., k].sum() for k in sparse) / runs, "AC", "AC"),
        "readout": (12, 3 * np.count_nonzero(pooled) / runs, "MAC", "MAC"),
        "loop": (9, 3 * b[:-2].sum() / runs, "AC", "AC"),
        "own": (3, b[:-1].sum() / runs, "AC", "AC"),
    }
    np.savez(tmp_path / "x.npz", x=x)
    measured = measure(graph, tmp_path / "x.npz")
    table = {row["name"]: row for row in rows(graph, measured)}
    for name, (at_most, each, counted, as_measured) in wanted.items():
        row = table[name]
        assert (row["synops_at_most"], row["counted_as"], row["measured_as"]) == (at_most, counted, as_measured), name
        assert row["synops_measured"] == pytest.approx(each), name
    assert table["pool"]["other_operations"] == 36
    assert table["a"]["rate"] == pytest.approx(a.mean())
    assert table["x"]["rate"] == pytest.approx(x.mean())
    sums = describe(graph, measured=measured)["synops"]
    assert sums["at_most"] == {"AC": len(pairs) + 6 + 9 + 3, "MAC": 12}
    assert (sums["measured"]["samples"], sums["measured"]["steps"]) == (5, 9)
    assert sums["measured"]["AC"] == pytest.approx(sum(each for _, each, _, kind in wanted.values() if kind == "AC"))


def test_more_samples_than_run_at_a_time_are_all_counted(tmp_path):
    net = snnc.Sequential(4, snnc.Dense(3), snnc.LIF(), snnc.Dense(2), snnc.LI())
    x = (np.random.default_rng(0).random((6, 37, 4)) < 0.3).astype(np.float32)
    np.savez(tmp_path / "x.npz", input=x)
    measured = measure(net.graph(), tmp_path / "x.npz")
    assert measured.samples == 37
    assert next(iter(measured.operations.values()))[0] == pytest.approx(3 * x.sum() / (6 * 37))


def test_graded_values_are_counted_as_multiplications(tmp_path):
    net = snnc.Sequential(4, snnc.Dense(3), snnc.LIF(), kind="values")
    x = np.random.default_rng(0).normal(size=(6, 2, 4)).astype(np.float32)
    np.savez(tmp_path / "x.npz", input=x)
    found = describe(net.graph(), measured=measure(net.graph(), tmp_path / "x.npz"))
    assert found["synops"]["at_most"] == {"AC": 0, "MAC": 12}
    assert found["synops"]["measured"]["MAC"] == pytest.approx(12)
    assert any("--input-kind spikes" in line for line in to_text(found))


def test_without_data_no_activity_is_made_up():
    found = describe(mixed())
    assert found["synops"]["measured"] is None
    assert not any("measured" in line for line in to_text(found))


# ---- equations and resets --------------------------------------------------------------------------------------------

NEURONS = [make() for make in LIBRARY] + [
    LIF(0.9, 1.2, reset="zero"),
    LIF(0.9, reset="value", v_reset=-0.3, reset_delay=False, strict=False),
    LIF(0.9, reset="subtract", reset_delay=False, compensated=True),
    LIF(0.9, reset="zero", input_kept=False, clamp=True),
    CubaLIF(0.8, 0.7, 0.9, reset_delay=False),
    ALIF(normalised=False),
    Alpha(reset="subtract"),
    SLSTM(reset="zero"),
    Lapicque(R=2.0, C=3.0),
]


@pytest.mark.parametrize("filled", [True, False], ids=["numbers", "names"])
@pytest.mark.parametrize("number", range(len(NEURONS)))
def test_printed_equations_compute_the_neuron(number, filled):
    model = NEURONS[number]
    rng = np.random.default_rng(number)
    parameters = {} if filled else {n: np.float64(v) * rng.uniform(0.8, 1.0, 7) for n, v in model.parameters.items()}
    values = {n: np.asarray(parameters.get(n, v), np.float64) for n, v in model.parameters.items()}
    before = {n: rng.uniform(0.2, 2.0, 7) for n in model.states}
    inputs = {n: rng.normal(0.3, 1.0, 7) for n in model.inputs}
    wanted = evaluate(model.equations, {**values, **before, **inputs})
    given = {f"{n}[t-1]": v for n, v in before.items()} | {f"{n}[t]": v for n, v in inputs.items()} | values
    found = computed(readable(Population(model, (7,), parameters)), given)
    for name in (*model.states, *model.outputs):
        np.testing.assert_allclose(found[f"{name}[t]"], wanted[name], rtol=1e-5, atol=1e-6)


def test_numbers_are_filled_in_and_ranges_keep_their_names():
    plain = Population(LIF(0.9, 1.5, reset_delay=False), (4,))
    assert readable(plain) == [
        "v_pre[t] = 0.9 v[t-1] + i[t]",
        "s[t] = H(v_pre[t] > 1.5)",
        "v[t] = v_pre[t] - 1.5 s[t]",
    ]
    ranged = Population(LIF(), (2,), {"beta": np.float32([0.5, 0.9])}, frozenset({"beta"}))
    assert "v[t] = beta v[t-1] + i[t] - r[t]" in readable(ranged)


@pytest.mark.parametrize(
    ("model", "fires", "reset"),
    [
        (LIF(), "(>)", "the threshold is subtracted, in the step after the spike"),
        (LIF(strict=False, reset="zero", reset_delay=False), "(>=)", "to 0, at once"),
        (LIF(reset="zero"), "(>)", "to 0, in the step after the spike"),
        (IF(reset="value", v_reset=-0.5, reset_delay=False), "(>)", "to -0.5, at once"),
        (LIF(reset="none"), "(>)", "none: no state depends on a spike"),
        (CubaLIF(), "(>)", "the threshold is subtracted, in the step after the spike"),
        (CubaLIF(reset_delay=False), "(>)", "the threshold is subtracted, at once"),
        (Alpha(), "(>)", "to 0, in the step after the spike"),
        (ALIF(), "(>)", "as the equations say, in the step after the spike"),
        (Threshold(strict=False), "(>=)", "none: it has no state"),
    ],
)
def test_the_reset_is_said_in_words(model, fires, reset):
    found = firing(Population(model, (3,)))
    assert found.fires.endswith(fires)
    assert found.reset == reset


def test_integrators_do_not_fire():
    assert firing(Population(LI(), (3,))).fires is None


def test_the_gradient_of_the_reset_is_said():
    assert "gradients do not flow" in firing(Population(LIF(), (3,))).gradient
    assert "gradients flow" in firing(Population(LIF(detach=False), (3,))).gradient


# ---- the table -------------------------------------------------------------------------------------------------------


def test_the_table_follows_the_values():
    names = [row["name"] for row in rows(mixed())]
    order = {name: k for k, name in enumerate(names)}
    assert order["x"] < order["conv"] < order["a"] < order["pool"] < order["readout"] < order["b"]
    assert order["loop"] < order["b"]
    assert "out" not in order
    table = {row["name"]: row for row in rows(mixed())}
    assert table["loop"]["from"] == ["b[t-2]"]
    assert table["conv"]["kind"] == "conv 3x3 s2 p1 g2, 2 to 4 channels"
    assert table["sparse"]["kind"] == "sparse 36x3, 6 weights"
    assert table["readout"]["parameters"] == table["readout"]["learnable"] == 15
    assert (table["own"]["parameters"], table["own"]["learnable"]) == (3, 0)


@pytest.mark.parametrize("name", ["snntorch_conv_bn_keep_ts.onnx", "snntorch_nir_rleaky.nir", "norse_lsnn_dyn.onnx"])
def test_no_line_is_wider_than_the_terminal(name):
    from snnc.driver.loading import load_model

    found = describe(load_model(CORPUS / name))
    for width in (60, 80, 120):
        lines = [*to_text(found, width), *assumption_lines(found, width)]
        assert max(map(len, lines)) <= width
        assert not any(line.endswith(" ") for line in lines)


def test_populations_of_one_neuron_are_explained_once():
    net = snnc.Sequential(4, snnc.Dense(3), snnc.LIF(0.8), snnc.Dense(3), snnc.LIF(0.8), snnc.Dense(2), snnc.LIF(0.7))
    found = describe(net.graph())["neurons"]
    assert [len(neuron["populations"]) for neuron in found] == [2, 1]


def test_names_cannot_steer_the_terminal():
    graph = Graph("evil\x1b[2J")
    graph.add("x\x1b]0;title\x07", Input((2,), "spikes", FileLayout()))
    graph.add("[red]n[/red]", Population(LIF(), (2,)))
    graph.add("y", Output())
    graph.connect("x\x1b]0;title\x07", "[red]n[/red]")
    graph.connect("[red]n[/red]", "y")
    found = describe(graph)
    text = "".join([*to_text(found), *assumption_lines(found)])
    assert text.isprintable()
    assert "[red]n[/red]" in text


# ---- assumptions -----------------------------------------------------------------------------------------------------


def said(graph, **options):
    return {s["about"]: s["text"] for s in describe(graph, **options)["statements"]}


def test_every_front_end_says_surrogate_time_step_and_reset(tmp_path):
    from snnc.driver.loading import load_model

    torch, snn = pytest.importorskip("torch"), pytest.importorskip("snntorch")

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.fc, self.lif = torch.nn.Linear(4, 3), snn.Leaky(beta=0.9)

        def forward(self, x, mem):
            return self.lif(self.fc(x), mem)

    graphs = {
        "onnx": load_model(CORPUS / "snntorch_leaky_sub_ts.onnx"),
        "nir": load_model(CORPUS / "hand_nir_lif.nir"),
        "nir given": load_model(CORPUS / "hand_nir_lif.nir", dt=2e-4),
        "dsl": snnc.Sequential(4, snnc.Dense(3), snnc.LIF()).graph(),
        "torch": snnc.from_torch(Net(), (torch.zeros(1, 4), torch.zeros(1, 3))),
    }
    for source, graph in graphs.items():
        found = said(graph)
        times = [found["time step"]] if "time step" in found else [a for a in graph.assumptions if "dt = " in a]
        assert len(times) == 1, source
        assert ("discrete" in times[0]) == ("nir" not in source), source
        assert "atan(alpha=2)" in found["surrogate"], source
        assert "threshold is subtracted" in found["reset"] or "to 0" in found["reset"], source
        assert found["initial states"].startswith("every state starts at 0"), source
    assert "dt = 0.0002 s, as given." in graphs["nir given"].assumptions


def test_the_surrogate_is_the_models_or_the_chosen_one():
    from snnc.compiler.neurons.surrogates.library import fast_sigmoid

    net = snnc.Network()
    x = net.input(3)
    a = net.population(3, snnc.LIF(), name="a", surrogate=fast_sigmoid(10))
    b = net.population(3, snnc.LIF(), name="b", initial={"v": 0.5})
    net.connect(x, a)
    net.connect(a, b)
    assert said(net.graph())["surrogate"].startswith("a: fast_sigmoid(slope=10), from the model.")
    assert "as chosen, for all others" in said(net.graph(), surrogate=fast_sigmoid(3))["surrogate"]
    assert said(net.graph())["initial states"].startswith("b.v starts at 0.5")


# ---- the command -----------------------------------------------------------------------------------------------------


def test_the_command_measures_on_data(capsys):
    assert cli.run_command(["check", str(EXAMPLE / "digits.onnx"), "--data", str(EXAMPLE / "digits.npz"), "--input-kind", "spikes"]) == 0
    out = capsys.readouterr().out
    assert "measured on 256 samples, 25 steps of digits.npz" in out
    assert "7,400 AC" in out
    assert "MAC:" in out
    assert "\x1b" not in out


def test_a_project_says_the_surrogate_that_it_was_compiled_with(capsys, tmp_path):
    net = snnc.Sequential(4, snnc.Dense(3), snnc.LIF(), snnc.Dense(2), snnc.LI())
    snnc.compile(net, loss="ce_mean_membrane", surrogate="fast_sigmoid:7", output=tmp_path / "p").close()
    assert cli.run_command(["check", str(tmp_path / "p")]) == 0
    assert "fast_sigmoid(slope=7), as chosen" in capsys.readouterr().out


def test_json_has_both_counts_with_labels(capsys):
    arguments = ["check", str(EXAMPLE / "digits.onnx"), "--data", str(EXAMPLE / "digits.npz"), "--json"]
    assert cli.run_command(arguments) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["synops"]["at_most"] == {"AC": 1000, "MAC": 6400}
    assert 0 < found["synops"]["measured"]["AC"] < 7400
    assert {"layers", "connections", "table", "neurons", "statements", "assumptions"} <= set(found)


@pytest.mark.parametrize(
    ("threshold", "warned"), [(1.0, None), (50.0, "W279: 100 % of the neurons"), (-50.0, "W280: 100 % of the neurons")]
)
def test_layers_that_are_silent_or_saturated_are_warned_of(threshold, warned, capsys, tmp_path):
    net = snnc.Network()
    x = net.input(10)
    hidden = net.population(20, snnc.LIF(0.9, threshold=threshold), name="hidden")
    net.connect(x, hidden, snnc.Dense(init=snnc.Normal(0.5)))
    net.output(hidden)
    snnc.write_onnx(net.graph(), tmp_path / "net.onnx")
    np.savez(tmp_path / "d.npz", x=np.random.default_rng(0).random((4, 20, 10)) < 0.3)
    assert cli.run_command(["check", str(tmp_path / "net.onnx"), "--data", str(tmp_path / "d.npz"), "--input-kind", "spikes"]) == 0
    said = capsys.readouterr().err
    assert (warned in said and "'hidden" in said) if warned else "W27" not in said and "W28" not in said


def test_data_that_do_not_fit_are_refused(capsys, tmp_path):
    np.savez(tmp_path / "d.npz", spikes=np.full((25, 2, 64), np.nan, np.float32))
    assert cli.run_command(["check", str(EXAMPLE / "digits.onnx"), "--data", str(tmp_path / "d.npz")]) == 2
    assert "not finite" in capsys.readouterr().err
    np.savez(tmp_path / "d.npz", spikes=np.zeros((25, 2, 63), np.float32))
    assert cli.run_command(["check", str(EXAMPLE / "digits.onnx"), "--data", str(tmp_path / "d.npz")]) == 2
    assert "63" in capsys.readouterr().err


def test_the_layers_of_a_nir_file_stand_in_the_order_of_its_values_whatever_their_names(tmp_path):
    nodes = {
        "input": nir.Input(np.array([2])),
        "z_first": linear(3, 2),
        "y_first": lif(3),
        "delay": nir.Delay(np.full(3, 0.001, np.float32)),
        "b_second": linear(3, 3),
        "a_second": lif(3),
        "0_back": linear(3, 3),
        "output": nir.Output(np.array([3])),
    }
    forward = ["input", "z_first", "y_first", "delay", "b_second", "a_second", "output"]
    edges = [*itertools.pairwise(forward), ("a_second", "0_back"), ("0_back", "y_first")]
    found = describe(snnc.load(write(tmp_path / "net.nir", nodes, edges), dt=0.001))
    order = ["z_first", "y_first", "b_second", "a_second", "0_back"]
    assert [row["name"] for row in found["table"] if row["name"] in nodes] == ["input", *order]
    assert [layer["name"] for layer in found["layers"]] == ["y_first", "a_second"]
    assert [c["name"] for c in found["connections"] if c["name"] in nodes] == ["z_first", "b_second", "0_back"]
    assert [n for neuron in found["neurons"] for n in neuron["populations"]] == ["y_first", "a_second"]
