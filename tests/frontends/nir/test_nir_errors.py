"""Files that are not NIR, or are invalid: one error with a code each, quickly and without much memory."""

import contextlib
import time
from pathlib import Path

import h5py
import nir
import numpy as np
import pytest
from nir_files import chain, edit, full, good, lif, linear, replace, write

from snnc.compiler.errors import SnncError
from snnc.frontends.load import load
from snnc.frontends.nir import errors, load_nir
from snnc.frontends.nir.build import MAX_DELAY
from snnc.frontends.nir.reading import storage
from snnc.frontends.nir.reading.reader import MAX_DEPTH

CORPUS = Path(__file__).parents[2] / "corpus"


def refused(path, kind, text, **options):
    started = time.process_time()  # whatever else the machine does
    with pytest.raises(kind, match=kind.code) as caught:
        load_nir(path, **options)
    assert text in str(caught.value), str(caught.value)
    assert type(caught.value) is kind
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 1_000
    assert time.process_time() - started < 20


def changed(tmp_path, change, kind, text, **options):
    refused(edit(good(tmp_path / "m.nir"), change), kind, text, **options)


def nodes_of(group, name="n1"):
    return group["nodes"][name]


def test_codes_are_unique():
    kinds = [errors.NirError, *errors.NirError.__subclasses__()]
    assert len({k.code for k in kinds}) == len(kinds)
    assert all(k.code.startswith("SNNC-E7") for k in kinds)


# ---- the file --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("data", [b"", b"hello", b"\x89HDF\r\n\x1a\n", b"\x89HDF\r\n\x1a\n" + b"\0" * 500])
def test_what_is_no_hdf5(tmp_path, data):
    (tmp_path / "m.nir").write_bytes(data)
    refused(tmp_path / "m.nir", errors.UnreadableNirError, "cannot be read as HDF5")
    with pytest.raises(errors.UnreadableNirError):
        load(tmp_path / "m.nir")


def test_what_is_not_there_or_a_folder(tmp_path):
    refused(tmp_path / "none.nir", errors.UnreadableNirError, "No such file")
    refused(tmp_path, errors.UnreadableNirError, "cannot be read")


@pytest.mark.parametrize("part", [0.1, 0.5, 0.9, 0.999])
def test_a_truncated_file(tmp_path, part):
    data = good(tmp_path / "m.nir").read_bytes()
    (tmp_path / "m.nir").write_bytes(data[: int(len(data) * part)])
    refused(tmp_path / "m.nir", errors.UnreadableNirError, "truncated")


def test_flipped_bytes_never_end_in_another_exception(tmp_path):
    data = bytearray(good(tmp_path / "m.nir").read_bytes())
    rng = np.random.default_rng(3)
    for _ in range(60):
        broken = bytearray(data)
        for at in rng.integers(96, len(data), 8):
            broken[at] ^= int(rng.integers(1, 255))
        (tmp_path / "b.nir").write_bytes(broken)
        with contextlib.suppress(SnncError):
            load_nir(tmp_path / "b.nir")


def test_other_hdf5(tmp_path):
    with h5py.File(tmp_path / "m.nir", "w") as file:
        file["weights"] = np.ones(3)
    refused(tmp_path / "m.nir", errors.NotNirError, "'weights'")


def test_a_root_that_is_no_graph(tmp_path):
    with h5py.File(tmp_path / "m.nir", "w") as file:
        file.create_group("node")["type"] = "Linear"
    refused(tmp_path / "m.nir", errors.NotNirError, "single Linear")


def test_a_graph_without_nodes_or_edges(tmp_path):
    for name in ("nodes", "edges"):
        changed(tmp_path, lambda g, name=name: g.__delitem__(name), errors.NotNirError, f"no {name}")


# ---- links -----------------------------------------------------------------------------------------------------------


def test_external_links_are_not_followed(tmp_path):
    secret = tmp_path / "secret.h5"
    with h5py.File(secret, "w") as file:
        file["w"] = np.ones((3, 2), np.float32)

    def link(group):
        del nodes_of(group, "n0")["weight"]
        nodes_of(group, "n0")["weight"] = h5py.ExternalLink(str(secret), "/w")

    changed(tmp_path, link, errors.NirLinkError, "an external link")


def test_soft_links_are_not_followed(tmp_path):
    def link(group):
        del nodes_of(group, "n0")["weight"]
        nodes_of(group, "n0")["weight"] = h5py.SoftLink("/node/nodes/n1/tau")

    changed(tmp_path, link, errors.NirLinkError, "a soft link")


def test_the_root_may_be_no_link(tmp_path):
    with h5py.File(tmp_path / "m.nir", "w") as file:
        file["node"] = h5py.ExternalLink(str(good(tmp_path / "other.nir")), "/node")
    refused(tmp_path / "m.nir", errors.NirLinkError, "an external link")


def test_virtual_and_external_datasets_are_not_read(tmp_path):
    with h5py.File(tmp_path / "source.h5", "w") as file:
        file["w"] = np.ones((3, 2), np.float32)
    layout = h5py.VirtualLayout((3, 2), np.float32)
    layout[:] = h5py.VirtualSource(str(tmp_path / "source.h5"), "w", (3, 2))

    def virtual(group):
        del nodes_of(group, "n0")["weight"]
        nodes_of(group, "n0").create_virtual_dataset("weight", layout)

    def external(group):
        del nodes_of(group, "n0")["weight"]
        nodes_of(group, "n0").create_dataset("weight", (3, 2), np.float32, external=[("/etc/passwd", 0, 24)])

    changed(tmp_path, virtual, errors.NirLinkError, "another file")
    changed(tmp_path, external, errors.NirLinkError, "another file")


# ---- sizes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(10**7, 10**7), (30_000, 30_000), (5_000, 5_000)])
def test_datasets_that_were_never_written(tmp_path, shape):
    def huge(group):
        del nodes_of(group, "n0")["weight"]
        nodes_of(group, "n0").create_dataset("weight", shape, np.float32, chunks=(100, 100))

    changed(tmp_path, huge, errors.NirTooLargeError, str(list(shape)))


def test_a_declared_shape_is_not_allocated(tmp_path):
    changed(tmp_path, lambda g: replace(nodes_of(g, "input"), "shape", [10**6, 10**6]), errors.NirShapeError, "2147483647")


@pytest.mark.parametrize(("size", "text"), [(2**19, "524,288 chunks"), (2_000, "2,000 of which were never written")])
def test_many_chunks_are_not_looked_up(tmp_path, size, text):
    def change(group):
        del group["nodes"]["n1"]["tau"]
        group["nodes"]["n1"].create_dataset("tau", (size,), "f4", chunks=(1,), fillvalue=1.0)
        group["nodes"]["n1"]["metadata/filler"] = np.random.default_rng(0).normal(size=2_000)

    changed(tmp_path, change, errors.NirTooLargeError, text)


def test_sizes_of_more_axes_than_an_array_has(tmp_path):
    long = np.ones(2**20, np.int64)
    changed(tmp_path, lambda g: replace(g["nodes"]["input"], "shape", long, compression="gzip"), errors.NirFieldError, "[1048576]")


def test_a_heap_that_hdf5_would_walk_for_ever(tmp_path):
    path = good(tmp_path / "m.nir")
    data = bytearray(path.read_bytes())
    at = data.index(b"GCOL\x01")
    data[at + 16 : at + 18] = bytes(2)  # the first object is called free, of size 0
    data[at + 24 : at + 32] = bytes(8)
    path.write_bytes(data)
    refused(path, errors.UnreadableNirError, "does not end")


def test_addresses_of_another_width(tmp_path):
    plan = h5py.h5p.create(h5py.h5p.FILE_CREATE)
    plan.set_sizes(4, 4)
    h5py.h5f.create(str(tmp_path / "m.nir").encode(), h5py.h5f.ACC_TRUNC, plan).close()
    refused(tmp_path / "m.nir", errors.UnreadableNirError, "8 bytes")


def test_too_many_nodes(tmp_path, monkeypatch):
    monkeypatch.setattr(storage, "MAX_MEMBERS", 2_000)

    def many(group):
        for k in range(2_001):
            group["nodes"][f"x{k}"] = nodes_of(group)

    changed(tmp_path, many, errors.NirTooLargeError, "2,000")


def test_too_many_edges(tmp_path):
    def many(group):
        del group["edges"]
        group.create_dataset("edges", (10**7, 2), h5py.string_dtype(), chunks=(10**4, 2), compression="gzip")
        group.file.create_dataset("ballast", data=np.random.default_rng(0).random(10**6))

    changed(tmp_path, many, errors.NirTooLargeError, "10,000,000 edges")


def test_graphs_that_hold_each_other_many_times(tmp_path, monkeypatch):
    """Hard links make a small file that unfolds to 2^30 nodes."""
    monkeypatch.setattr(storage, "MAX_MEMBERS", 2_000)

    def unfold(group):
        inner = nodes_of(group)
        for k in range(30):
            outer = group.file.create_group(f"g{k}")
            outer["type"] = "NIRGraph"
            outer.create_dataset("edges", data=np.zeros((0, 2)))
            members = outer.create_group("nodes")
            members["a"], members["b"] = inner, inner
            inner = outer
        group["nodes"]["bomb"] = inner

    changed(tmp_path, unfold, errors.NirTooLargeError, "2,000")


def test_deep_and_cyclic_nesting(tmp_path):
    def deep(group):
        for _ in range(MAX_DEPTH + 1):
            inner = group["nodes"].create_group("inner")
            inner["type"] = "NIRGraph"
            inner.create_dataset("edges", data=np.zeros((0, 2)))
            inner.create_group("nodes")
            group = inner

    def cyclic(group):
        group["nodes"]["again"] = group

    changed(tmp_path, deep, errors.NirNestingError, f"at most {MAX_DEPTH}")
    changed(tmp_path, cyclic, errors.NirNestingError, "contains itself")


def test_slashes_without_end(tmp_path):
    def loop(group):
        names = group["nodes"].create_group("a")
        names["b"] = names

    changed(tmp_path, loop, errors.NirFieldError, "no type")


# ---- nodes -----------------------------------------------------------------------------------------------------------


def test_unknown_types(tmp_path):
    changed(tmp_path, lambda g: replace(nodes_of(g), "type", "QuantumLIF"), errors.NirNodeTypeError, "'QuantumLIF'")
    changed(tmp_path, lambda g: replace(nodes_of(g), "type", 3), errors.NirFieldError, "instead of one name")


def test_text_whose_damaged_type_crashes_hdf5(tmp_path):
    path = tmp_path / "m.nir"
    content = bytearray((CORPUS / "hand_nir_threshold.nir").read_bytes())
    content[12841] = 52
    path.write_bytes(content)
    refused(path, errors.NirFieldError, "type of node 'fc' contains objects or references instead of one name")


def test_missing_and_unknown_fields(tmp_path):
    changed(tmp_path, lambda g: nodes_of(g).__delitem__("tau"), errors.NirFieldError, "has no tau")
    changed(tmp_path, lambda g: nodes_of(g).__setitem__("rho", 0.5), errors.NirFieldError, "'rho'")
    changed(tmp_path, lambda g: g["nodes"].__setitem__("x", 0.5), errors.NirFieldError, "must be a group")
    changed(tmp_path, lambda g: g["nodes"].create_group("x"), errors.NirFieldError, "has no type")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("fast", "text"),
        (np.array(["a", "b", "c"], dtype=h5py.string_dtype()), "text"),
        (np.array([1j, 2j, 3j]), "complex"),
        (np.array([(1, 2.0)], dtype=[("a", "i4"), ("b", "f4")]), "records"),
        (h5py.Empty("f"), "is empty"),
        (np.zeros((0,)), "without values"),
    ],
)
def test_fields_that_are_no_numbers(tmp_path, value, text):
    changed(tmp_path, lambda g: replace(nodes_of(g), "tau", value), errors.NirFieldError, text)


def test_object_references_are_refused(tmp_path):
    def refer(group):
        replace(nodes_of(group), "tau", group.ref, dtype=h5py.ref_dtype)

    changed(tmp_path, refer, errors.NirFieldError, "references")


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e300])
def test_numbers_that_are_not_finite(tmp_path, value):
    weights = np.ones((3, 2))
    weights[1, 1] = value
    changed(tmp_path, lambda g: replace(nodes_of(g, "n0"), "weight", weights), errors.NirNotFiniteError, "at index [1, 1]")


@pytest.mark.parametrize("value", [0.0, -1.0])
def test_time_constants_that_are_not_positive(tmp_path, value):
    changed(tmp_path, lambda g: replace(nodes_of(g), "tau", np.array([1, value, 1])), errors.NirTimeConstantError, f"{value:g} (1 of 3)")


def test_fields_of_different_shape(tmp_path):
    changed(tmp_path, lambda g: replace(nodes_of(g), "tau", np.ones(4)), errors.NirShapeError, "[4]")
    changed(tmp_path, lambda g: replace(nodes_of(g, "n0"), "weight", np.ones((3, 2, 2))), errors.NirShapeError, "[outputs, inputs]")
    nodes, edges = chain(linear(3, 2, bias=True), inputs=2, outputs=3)
    path = write(tmp_path / "a.nir", nodes, edges)
    refused(edit(path, lambda g: replace(nodes_of(g, "n0"), "bias", np.ones(4))), errors.NirShapeError, "must be [3]")


def test_a_negative_delay_and_one_that_is_too_long(tmp_path):
    for seconds, kind, text in ((-0.1, errors.NirFieldError, "-0.1 s"), (1e6, errors.NirTimeStepError, f"{MAX_DELAY:,}")):
        path = write(tmp_path / "m.nir", *chain(nir.Delay(full(2, seconds)), inputs=2))
        refused(path, kind, text)


@pytest.mark.parametrize(
    ("field", "value", "text"),
    [
        ("stride", 0, "1 or more"),
        ("padding", -1, "0 or more"),
        ("padding", "reflect", "'reflect'"),
        ("groups", 0, "1 or more"),
        ("stride", 1.5, "whole"),
    ],
)
def test_windows_with_wrong_numbers(tmp_path, field, value, text):
    conv = nir.Conv2d((5, 5), np.ones((2, 1, 3, 3), np.float32), 1, 0, 1, 1, np.zeros(2, np.float32))
    path = write(tmp_path / "m.nir", *chain(conv, inputs=(1, 5, 5), outputs=(2, 3, 3)))
    refused(edit(path, lambda g: replace(nodes_of(g, "n0"), field, value)), errors.NirFieldError, text)


def test_windows_that_do_not_fit(tmp_path):
    conv = nir.Conv2d((5, 5), np.ones((2, 1, 3, 3), np.float32), 1, 0, 1, 1, np.zeros(2, np.float32))
    refused(write(tmp_path / "m.nir", *chain(conv, inputs=(1, 2, 2), outputs=(2, 3, 3))), errors.NirShapeError, "input_shape")
    refused(write(tmp_path / "m.nir", *chain(conv, inputs=(3, 5, 5), outputs=(2, 3, 3))), errors.NirShapeError, "channels")
    path = write(tmp_path / "m.nir", *chain(conv, inputs=(1, 5, 5), outputs=(2, 3, 3)))
    refused(edit(path, lambda g: replace(nodes_of(g, "n0"), "weight", np.ones((2, 3, 3)))), errors.NirShapeError, "4 axes")
    path = write(tmp_path / "m.nir", *chain(conv, inputs=(1, 5, 5), outputs=(2, 3, 3)))
    refused(edit(path, lambda g: replace(nodes_of(g, "n0"), "bias", np.ones(3))), errors.NirShapeError, "must be [2]")
    pool = nir.AvgPool2d(np.array([3, 3]), np.array([1, 1]), np.array([0, 0]))
    refused(write(tmp_path / "m.nir", *chain(pool, inputs=(1, 2, 2), outputs=(1, 1, 1))), errors.NirShapeError, "no window")


# ---- edges -----------------------------------------------------------------------------------------------------------


def text_edges(*edges):
    return np.array(edges, dtype=h5py.string_dtype())


@pytest.mark.parametrize(
    ("edges", "text"),
    [
        (text_edges(("input", "ghost")), "'ghost'"),
        (np.array([[0, 1], [1, 2]]), "pairs of node names"),
        (text_edges("input", "n0"), "pairs of node names"),
        (text_edges(("input", "n0", "n1")), "pairs of node names"),
        (text_edges(("input", "n0"), ("input", "n0"), ("n0", "n1"), ("n1", "output")), "occurs twice"),
        (text_edges(("n0", "input")), "reverse it"),
        (text_edges(("output", "n0")), "reverse it"),
        (np.array([[b"input", b"\xff\xfe"]], dtype="S5"), "UTF-8"),
    ],
)
def test_edges_that_mean_nothing(tmp_path, edges, text):
    changed(tmp_path, lambda g: replace(g, "edges", edges), errors.NirEdgeError, text)


def test_node_names_that_are_no_text(tmp_path):
    def name(group):
        h5py.h5g.create(group["nodes"].id, b"\xff\xfe")

    changed(tmp_path, name, errors.NirFieldError, "not UTF-8 text")


def test_unconnected_graphs(tmp_path):
    changed(tmp_path, lambda g: replace(g, "edges", np.zeros((0, 2))), errors.NirUnconnectedError, "no edges")
    some = text_edges(("input", "n0"), ("n0", "n1"))
    changed(tmp_path, lambda g: replace(g, "edges", some), errors.NirUnconnectedError, "has no source")
    some = text_edges(("n0", "n1"), ("n1", "output"))
    changed(tmp_path, lambda g: replace(g, "edges", some), errors.NirUnconnectedError, "has no target")


def test_sizes_that_do_not_fit(tmp_path):
    changed(tmp_path, lambda g: replace(nodes_of(g, "input"), "shape", [5]), errors.NirShapeError, "returns [5]")
    changed(tmp_path, lambda g: replace(nodes_of(g, "input"), "shape", [-2]), errors.NirShapeError, "must be 1 or more")


def test_a_cycle_without_a_neuron(tmp_path):
    nodes, edges = chain(linear(2, 2), nir.Delay(full(2, 1e-9)), inputs=2)
    refused(write(tmp_path / "m.nir", nodes, [*edges, ("n1", "n0")]), errors.NirCycleError, "n0 (Linear) -> n1 (Delay)")


def test_a_nested_graph_with_several_inputs(tmp_path):
    nodes, edges = chain(lif(), inputs=3)
    inner = nir.NIRGraph({**nodes, "more": nir.Input(np.array([3]))}, [*edges, ("more", "n0")], type_check=False)
    refused(write(tmp_path / "m.nir", *chain(inner, inputs=3)), errors.NirNestingError, "2 nodes of type Input")


# ---- options ---------------------------------------------------------------------------------------------------------


def test_an_unknown_dialect(tmp_path):
    refused(good(tmp_path / "m.nir"), errors.NirDialectError, "nir, snntorch, norse, spikingjelly, spyx", dialect="brian")


@pytest.mark.parametrize("dt", [0.0, -1.0, float("nan"), float("inf")])
def test_a_time_step_that_is_none(tmp_path, dt):
    refused(good(tmp_path / "m.nir"), errors.NirTimeStepError, "positive number", dt=dt)
    nodes, edges = chain(linear(), lif(), outputs=3)
    refused(write(tmp_path / "m.nir", nodes, edges, metadata={"dt": dt}), errors.NirTimeStepError, "metadata")
