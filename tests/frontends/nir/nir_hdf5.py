"""Single changes of an HDF5 file, from wrong values to features of HDF5 that mislead a reader."""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import h5py
import numpy as np
from nir_random import Maker

NUMBERS = (0, 1, -1, 2, 3, 7, 100, 1e-4, 0.5, -0.5, 1e-30, 1e30, 1e300, -1e30, np.nan, np.inf, -np.inf, 2**31, 2**40, 2**63 - 1, 1e-45)
TYPES = [
    "Input",
    "Output",
    "Affine",
    "Linear",
    "Scale",
    "Conv1d",
    "Conv2d",
    "SumPool2d",
    "AvgPool2d",
    "Flatten",
    "Delay",
    "Threshold",
    "I",
    "IF",
    "LI",
    "LIF",
    "CubaLI",
    "CubaLIF",
    "NIRGraph",
    "X",
]


@dataclass
class Spot:
    """The file, where draws come from, and the folder that nothing may open."""

    file: h5py.File
    maker: Maker
    outside: object

    def objects(self):
        """Return all groups and datasets by path, each once; no links are followed."""
        found = {"": self.file["node"]}
        self.file["node"].visititems(found.__setitem__)
        return found

    def groups(self):
        return [o for o in self.objects().values() if isinstance(o, h5py.Group)]

    def typed(self):
        """Return the groups that are nodes."""
        found = self.objects()
        return [found[path.rpartition("/")[0]] for path in found if path.rpartition("/")[2] == "type"]

    def node(self):
        return self.maker.pick(self.typed())

    def group(self):
        return self.maker.pick(self.groups())

    def dataset(self):
        """Return a group and the name of one of its datasets."""
        found = self.objects()
        path = self.maker.pick([p for p, o in found.items() if isinstance(o, h5py.Dataset) and not p.endswith("type")])
        above, _, name = path.rpartition("/")
        return found[above], name

    def inner(self):
        """Return a group of edges and nodes."""
        found = self.objects()
        return self.maker.pick([o for p, o in found.items() if {f"{p}/edges".lstrip("/"), f"{p}/nodes".lstrip("/")} <= set(found)])

    def put(self, group, name, value, **options):
        if name in group:
            del group[name]
        return group.create_dataset(name, data=value, **options)

    def secret(self, kind="h5"):
        """Return a way to the file that nothing may open."""
        file = f"secret.{kind}"
        return self.maker.pick([str(self.outside / file), f"../outside/{file}", f"./x/../../outside/{file}", "link.h5"])


NAMES = ("a b", "ü", "0", "a.b", ".x", "a/b", "x" * 500, "\n", "node", "λ.1", "é" * 40, "input", "__class__", "{{7*7}}", '"; int x; //')


def change_type(s):
    s.put(s.node(), "type", s.maker.pick(TYPES))


def change_type_oddly(s):
    odd = [
        np.int64(3),
        np.array(["LIF"], dtype="S4"),
        b"LIF\x00\xff",
        "",
        "L" * 10_000,
        np.array(["LIF", "LIF"], dtype="S4"),
        h5py.Empty("S3"),
    ]
    s.put(s.node(), "type", s.maker.pick(odd))


def change_value(s):
    group, name = s.dataset()
    array = np.asarray(group[name][()])
    if array.dtype.kind in "fiu" and array.size:
        array = array.astype(np.float64)
        array.flat[int(s.maker.rng.integers(array.size))] = s.maker.pick(NUMBERS)
        s.put(group, name, array.astype(group[name].dtype) if s.maker.chance(0.5) else array)


def change_all_values(s):
    group, name = s.dataset()
    if group[name].dtype.kind in "fiu":
        s.put(group, name, np.full(group[name].shape, s.maker.pick(NUMBERS)))


def change_shape(s):
    group, name = s.dataset()
    array = np.asarray(group[name][()])
    ways = [
        array.T,
        array.reshape(-1),
        array[None],
        array[..., None],
        array.reshape(-1)[:1],
        array.reshape(-1)[0] if array.size else array,
        np.zeros((0, 3)),
        np.repeat(array[None], 2, 0),
        np.zeros((1,) * 20),
        array.reshape(-1)[: array.size // 2],
    ]
    s.put(group, name, s.maker.pick(ways))


def change_dtype(s):
    group, name = s.dataset()
    array = np.asarray(group[name][()])
    kinds = ["i1", "u1", "i8", "u8", "f2", "f8", ">f4", ">i2", "c8", "?", "S8", "longdouble"]
    s.put(group, name, array.astype(np.dtype(s.maker.pick(kinds))))


def change_to_odd_type(s):
    group, name = s.dataset()
    file = s.file
    odd = {
        "compound": lambda: np.zeros(3, [("a", "f4"), ("b", "i4")]),
        "complex like": lambda: np.zeros(3, [("r", "f4"), ("i", "f4")]),
        "array": lambda: np.zeros(2, [("a", "f4", (1000,))]),
        "opaque": lambda: np.zeros(3, "V8"),
        "empty": lambda: h5py.Empty("f4"),
        "text": lambda: "same",
        "texts": lambda: ["a", "b"],
    }
    if s.maker.chance(0.7):
        s.put(group, name, odd[s.maker.pick(odd)]())
        return
    if name in group:
        del group[name]
    kinds = [
        h5py.vlen_dtype(np.float32),
        h5py.ref_dtype,
        h5py.regionref_dtype,
        h5py.enum_dtype({"A": 1, "B": 2}),
        h5py.string_dtype("ascii", 5),
    ]
    made = group.create_dataset(name, (2,), s.maker.pick(kinds))
    if made.dtype.kind == "O" and h5py.check_ref_dtype(made.dtype):
        made[0] = file["node"].ref if h5py.check_ref_dtype(made.dtype) is h5py.Reference else file["node/type"].regionref[()]
    elif h5py.check_vlen_dtype(made.dtype):
        made[0] = np.ones(100_000, np.float32)


def name_a_type(s):
    group, name = s.dataset()
    del group[name]
    group[name] = np.dtype("f4")


def drop(s):
    group = s.group()
    del group[s.maker.pick(group)]


def drop_node(s):
    nodes = s.inner()["nodes"]
    del nodes[s.maker.pick(nodes)]


def change_edges(s):
    """Drop, repeat, add or turn an edge."""
    inner = s.inner()
    edges = [(a.decode(), b.decode()) for a, b in inner["edges"][()]]
    nodes = list(inner["nodes"])
    edge = s.maker.pick(edges) if edges else (nodes[0], nodes[0])
    ways = ["drop", "repeat", "add", "add", "turn", "away", "shuffle"]
    way = s.maker.pick(ways)
    if way == "drop" and edges:
        edges.remove(edge)
    elif way == "repeat":
        edges.append(edge)
    elif way == "add":
        edges.append((s.maker.pick(nodes), s.maker.pick(nodes)))
    elif way == "turn" and edges:
        edges[edges.index(edge)] = edge[::-1]
    elif way == "away":
        edges.append((edge[0], s.maker.pick(["nowhere", "", "node", "..", edge[1] + "/v", "\udc80" if s.maker.chance(0.1) else "é"])))
    else:
        edges = [edges[k] for k in s.maker.rng.permutation(len(edges))]
    s.put(inner, "edges", np.array(edges, dtype=h5py.string_dtype()).reshape(-1, 2))


def change_edges_oddly(s):
    inner = s.inner()
    edges = inner["edges"][()]
    odd = [
        lambda: edges.astype("S20"),
        lambda: np.zeros((3, 2)),
        lambda: np.zeros((0, 2)),
        lambda: edges.T,
        lambda: np.full((3, 3), b"a", dtype="S1"),
        lambda: np.full((2, 2), b"\xff\xfe", dtype="S2"),
        lambda: np.array([b"input", b"output"], dtype="S6"),
        lambda: "input",
    ]
    s.put(inner, "edges", s.maker.pick(odd)())


def rename(s):
    """Give a node another name, with its edges."""
    inner = s.inner()
    old = s.maker.pick(inner["nodes"])
    new = s.maker.pick(
        ["a b", "ü", "0", "a.b", ".x", "a/b", "x" * 500, "\n", "node", "λ.1", "é" * 40, "input", "__class__", "{{7*7}}", '"; int x; //']
    )
    inner["nodes"].move(old, new)
    edges = [(new if a.decode() == old else a.decode(), new if b.decode() == old else b.decode()) for a, b in inner["edges"][()]]
    s.put(inner, "edges", np.array(edges, dtype=h5py.string_dtype()).reshape(-1, 2))


def rename_to_no_text(s):
    nodes = s.inner()["nodes"]
    old = s.maker.pick(nodes)
    nodes.id.links.move(old.encode(), nodes.id, b"\xff\xfe")


def nest(s):
    """Put the graph into another, once or many times."""
    for _ in range(int(s.maker.pick([1, 1, 2, 5, 31, 40]))):
        root = s.file["node"]
        ends = {kind: [n for n, v in root["nodes"].items() if v["type"][()] == kind.encode()] for kind in ("Input", "Output")}
        s.file.move("node", "inner")
        outer = s.file.create_group("node")
        outer["type"] = "NIRGraph"
        s.file.move("inner", "node/nodes/net")
        edges = []
        for kind, names in ends.items():
            for k, name in enumerate(names):
                s.file.copy(f"node/nodes/net/nodes/{name}", f"node/nodes/{kind}{k}")
                edges.append((f"{kind}{k}", "net") if kind == "Input" else ("net", f"{kind}{k}"))
        outer["edges"] = np.array(edges, dtype=h5py.string_dtype()).reshape(-1, 2)


def link_to_itself(s):
    """Lead a name to a group above, by a hard or a soft link, with an edge to it."""
    inner = s.inner()
    name = s.maker.pick(["again", *inner["nodes"]])
    if name in inner["nodes"]:
        del inner["nodes"][name]
    goal = s.maker.pick(s.groups())
    inner["nodes"][name] = goal if s.maker.chance(0.5) else h5py.SoftLink(goal.name)


def link_softly(s):
    group, name = s.dataset()
    goals = ["/nowhere", f"{group.name}/{name}", "/node", "../..", "."]
    goals += [f"{g.name}/{n}" for g, n in (s.dataset(), s.dataset())]
    del group[name]
    group[name] = h5py.SoftLink(s.maker.pick(goals))


def share(s):
    """Let a field be the dataset of another node."""
    (group, name), (other, theirs) = s.dataset(), s.dataset()
    goal = other[theirs]
    if name in group:
        del group[name]
    group[name] = goal


def link_outside(s):
    group = s.group()
    name = s.maker.pick(group)
    del group[name]
    group[name] = h5py.ExternalLink(s.maker.pick([s.secret(), "neighbour.h5"]), s.maker.pick(["/weight", "/node", "/"]))


def link_root_outside(s):
    s.file.move("node", "other")
    s.file["node"] = s.maker.pick([h5py.ExternalLink(s.secret(), "/node"), h5py.SoftLink("/other"), h5py.SoftLink("/node")])


def store_outside(s):
    group, name = s.dataset()
    shape = group[name].shape or (4,)
    del group[name]
    group.create_dataset(
        name, shape, "f4", external=[(s.secret("bin"), 0, h5py.h5f.UNLIMITED if s.maker.chance(0.3) else 4 * int(np.prod(shape)))]
    )


def store_virtually(s):
    group, name = s.dataset()
    shape = group[name].shape or (4,)
    layout = h5py.VirtualLayout(shape, "f4")
    goal = s.maker.pick([s.secret(), "neighbour.h5", ".", s.file.filename])
    source = h5py.VirtualSource(goal, "weight", (64, 64))
    layout[...] = source[tuple(slice(0, n) for n in shape)] if len(shape) == 2 else h5py.VirtualSource(goal, "weight", shape)
    del group[name]
    group.create_virtual_dataset(name, layout, fillvalue=1.0)


def declare_much(s):
    """Declare a huge dataset that was never written."""
    group, name = s.dataset()
    rank = max(1, group[name].ndim)
    side = int(s.maker.pick([10**3, 10**5, 10**9, 2**40, 2**62]))
    shape = (side, *(3,) * (rank - 1)) if s.maker.chance(0.5) else (min(side, 2**20),) * rank
    del group[name]
    group.create_dataset(name, shape, "f4", chunks=(1,) * rank if s.maker.chance(0.3) else True, fillvalue=s.maker.pick([0.0, 1.0, np.nan]))


def compress_much(s):
    """Store a dataset that is large only when unpacked."""
    group, name = s.dataset()
    rows, chunk = int(s.maker.pick([1, 8, 64])), int(s.maker.pick([1 << 14, 1 << 18]))
    del group[name]
    twice = s.maker.chance(0.3)
    plan = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plan.set_chunk((1, chunk))
    for _ in range(2 if twice else 1):
        plan.set_deflate(9)
    raw = zlib.compress(bytes(4 * chunk), 9)
    made = h5py.h5d.create(group.id, name.encode(), h5py.h5t.IEEE_F32LE, h5py.h5s.create_simple((rows, chunk)), plan)
    for row in range(rows):
        made.write_direct_chunk((row, 0), zlib.compress(raw, 9) if twice else raw)


def spoil_chunk(s):
    """Store a chunk that does not unpack, or to another size."""
    group, name = s.dataset()
    array = np.atleast_1d(group[name][()])
    if array.dtype.kind not in "fiu" or not array.size:
        return
    made = s.put(group, name, array, chunks=array.shape, compression="gzip", fletcher32=s.maker.chance(0.3))
    made.id.write_direct_chunk((0,) * array.ndim, s.maker.pick([b"", b"no zlib", zlib.compress(bytes(10**6)), zlib.compress(b"")]))


def pack(s):
    """Store a dataset in another of HDF5's ways, with the same values."""
    group, name = s.dataset()
    array = np.atleast_1d(group[name][()])
    if array.dtype.kind in "fiu" and array.size and group[name].ndim:
        ways = [
            {"compression": "lzf"},
            {"compression": "gzip"},
            {"chunks": True, "shuffle": True},
            {"fletcher32": True},
            {"maxshape": (None,) * array.ndim},
        ]
        s.put(group, name, array, **s.maker.pick(ways))


def change_metadata(s):
    group = s.maker.pick([s.file["node"], s.node()])
    name = s.maker.pick(["dt", "dt", "time", "é"])
    value = s.maker.pick([1e-3, 2.0, 0.0, -1.0, np.nan, np.inf, "1e-3", "x" * 1000, [1e-3], [1.0, 2.0], 10**30 * 1.0, np.int64(1)])
    if "metadata" in group and not isinstance(group["metadata"], h5py.Group):
        del group["metadata"]
    s.put(group.require_group("metadata"), name, value)


def add_field(s):
    s.node()[s.maker.pick(["bias", "v_reset", "w_in", "input_type", "output_type", "foo", "input_shape", "gain"])] = s.maker.pick(
        [1.0, np.ones(3), "x"]
    )


def add_attribute(s):
    s.group().attrs[s.maker.pick(["type", "x", "é"])] = s.maker.pick([1.0, "LIF", np.ones(3)])


def move_root(s):
    s.file.move("node", s.maker.pick(["nodes", "graph", "node2/node"]))


CHANGES = {
    f.__name__: f
    for f in (
        change_type,
        change_type_oddly,
        change_value,
        change_all_values,
        change_shape,
        change_dtype,
        change_to_odd_type,
        name_a_type,
        drop,
        drop_node,
        change_edges,
        change_edges_oddly,
        rename,
        rename_to_no_text,
        nest,
        link_to_itself,
        link_softly,
        share,
        link_outside,
        link_root_outside,
        store_outside,
        store_virtually,
        declare_much,
        compress_much,
        spoil_chunk,
        pack,
        change_metadata,
        add_field,
        add_attribute,
        move_root,
    )
}
