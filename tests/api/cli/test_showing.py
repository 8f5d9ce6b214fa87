"""The display of networks, graphs, sessions and snnc itself in a terminal and in a notebook."""

from importlib.metadata import version
from xml.etree import ElementTree

import numpy as np
import pytest

import snnc
from snnc.cli import main as cli
from snnc.compiler.ir.graph import Graph, Linear, Output, Population

HOSTILE = "a<script>alert(1)</script>&\x1b[31m\n\u202e" + "x" * 300


def network(name="net", hidden="hidden"):
    net = snnc.Network(name)
    source = net.input((2, 3), name="input")
    first = net.population(5, snnc.LIF(), name=hidden)
    net.connect(source, first, [snnc.Flatten(), snnc.Dense()])
    net.connect(first, first, snnc.Dense(bias=False), delay=1)
    readout = net.population(4, snnc.LI(), name="readout")
    net.connect(first, readout, snnc.Dense(bias=False))
    return net


def test_the_version_is_that_of_the_installed_package(capsys):
    assert snnc.__version__ == version("snnc")
    assert {"__version__", "compile"} <= set(dir(snnc))
    assert cli.run_command(["--version"]) == 0
    assert capsys.readouterr().out == f"snnc {snnc.__version__}\n"


def test_a_network_and_its_graph_show_layers_shapes_and_parameters():
    net = network()
    lines = repr(net).splitlines()
    # 6 x 5 + 5 (dense with bias), 5 x 5, 5 x 4, two parameters of LIF and one of LI
    assert lines[0] == "Network 'net': 9 neurons in 2 populations, 83 parameters"
    assert repr(net.graph()).splitlines()[1:] == lines[1:]
    assert repr(net.graph()).startswith("Graph 'net'")
    (dense,) = (line for line in lines if "dense 6x5" in line)
    cells = {line.split()[0]: line for line in lines[1:]}
    assert cells["input"].split()[-1] == "2x3"
    assert "LIF, 5 neurons" in cells["hidden"]
    assert dense.split()[-2:] == ["5", "35"]
    assert len(lines) == 1 + len(net.graph().names) - len(list(net.graph().of_type(Output)))


def test_a_session_shows_what_it_was_compiled_for_and_that_it_is_closed():
    session = snnc.compile(network(), loss="ce_count", optimizer="sgd:0.1", steps=7, batch=3)
    assert repr(session).splitlines()[:2] == [
        "Session 'net': 9 neurons in 2 populations, 83 parameters",
        "  target reference, 7 steps, batch 3, trains CrossEntropyCount by SGD",
    ]
    session.close()
    assert repr(session).splitlines()[1].endswith(", closed")
    with snnc.compile(network()) as session:
        assert repr(session).splitlines()[1] == "  target reference, any number of steps, batch any"


@pytest.mark.parametrize("make", [lambda net: net, lambda net: net.graph(), snnc.compile], ids=["network", "graph", "session"])
def test_names_are_text_wherever_they_are_shown(make):
    shown = make(network(HOSTILE, HOSTILE))
    text, html = repr(shown), shown._repr_html_()
    assert all(line.isprintable() for line in text.splitlines())
    assert max(map(len, text.splitlines())) < 300
    assert "<script" not in html
    assert "a<script>alert(1)</script>&" in "".join(ElementTree.fromstring(f"<div>{html}</div>").itertext())


def test_what_is_not_finished_or_at_fault_is_shown_too():
    assert repr(snnc.Network("new")).splitlines() == ["Network 'new': 0 neurons in 0 populations, 0 parameters"]
    loop = Graph("loop")
    for name in ("a", "b"):
        loop.add(name, Linear(np.ones((2, 2), np.float32)))
    loop.connect("a", "b")
    loop.connect("b", "a")
    assert [line.split() for line in repr(loop).splitlines()[1:]] == [[n, "dense", "2x2", "2", "4"] for n in "ab"]
    assert "<td" in loop._repr_html_()


def test_a_large_graph_is_cut_and_says_so():
    graph = Graph("large")
    for number in range(200):
        graph.add(f"p{number}", Population(snnc.LIF(), (2,)))
    assert repr(graph).splitlines()[-1] == "  … and 176 more"
    assert len(repr(graph)) < 4000
    assert "… and 176 more" in graph._repr_html_()
