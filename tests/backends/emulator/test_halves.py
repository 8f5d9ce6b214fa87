"""Halves are rounded to nearest even after every operation: in libraries, scalars and vectors of codelets, with each compiler."""

import shutil

import numpy as np
import pytest

from snnc.backends.emulator import popc
from snnc.backends.emulator.sources import in_declared_order
from snnc.compiler.errors import BuildError, ToolMissingError

HEADERS = "#include <poplar/Vertex.hpp>\n#include <poplar/VectorTypes.hpp>\nusing namespace poplar;\n"
FIELDS = """
  Input<Vector<half, VectorLayout::SPAN, 8>> a, b;
  Output<Vector<half, VectorLayout::SPAN, 8>> out;
"""
EVERY_HALF = np.arange(65536, dtype=np.uint16).view(np.float16)


def drawn(seed, n):
    """Return halves of every magnitude, and zeros, infinities and NaNs among them."""
    return np.random.default_rng(seed).integers(0, 65536, n, dtype=np.uint16).view(np.float16)


def run(cases, *arguments, bits, dtype):
    text = cases.run("halves", *arguments, stdin=" ".join(map(str, np.ravel(bits))))
    return np.array(text.split(), dtype=np.uint32).astype(f"u{np.dtype(dtype).itemsize}").view(dtype)


def compare(found, expected):
    """Compare bits; any NaN is as good as another."""
    expected = np.asarray(expected)
    both = np.isnan(found) & np.isnan(expected)
    raw = f"u{expected.dtype.itemsize}"
    assert len(found) == len(expected)
    assert np.array_equal(np.where(both, 0, found.view(raw)), np.where(both, 0, expected.view(raw)))


def test_every_half_is_the_float_of_the_same_value(cases):
    compare(run(cases, "library", "widen", bits=EVERY_HALF.view(np.uint16), dtype=np.float32), EVERY_HALF.astype(np.float32))


def test_floats_become_the_nearest_half(cases):
    halves = np.sort(EVERY_HALF[np.isfinite(EVERY_HALF)].astype(np.float32))[::7]
    between = (halves[1:].astype(np.float64) + halves[:-1]).astype(np.float32) / 2
    random = np.random.default_rng(0).integers(0, 2**32, 4001, dtype=np.uint32).view(np.float32)
    edges = np.float32([65519.9, 65520, np.inf, np.nan])
    floats = np.concatenate([halves, between, np.nextafter(between, np.float32(np.inf)), edges, random])
    with np.errstate(all="ignore"):
        expected = floats.astype(np.float16)
    compare(run(cases, "library", "narrow", bits=floats.view(np.uint32), dtype=np.float16), expected)


def test_expressions_and_sums_of_the_libraries(cases):
    a, b = drawn(1, 3003), drawn(2, 3003)
    bits = np.concatenate([a, b]).view(np.uint16)
    with np.errstate(all="ignore"):
        compare(run(cases, "library", "map", bits=bits, dtype=np.float16), a * b + b / a)
        rows, sums = a.astype(np.float32).reshape(-1, 7), np.zeros(429, np.float32)
        for column in rows.T:
            sums += column
        compare(run(cases, "library", "sums", bits=bits, dtype=np.float16), sums.astype(np.float16))


CODELETS = {
    "scalars": "for (unsigned i = 0; i < out.size(); ++i) { half s = a[i] * b[i]; s += a[i]; out[i] = s / b[i] - a[i]; }",
    "vectors": """
      const half4 *x = reinterpret_cast<const half4 *>(&a[0]), *y = reinterpret_cast<const half4 *>(&b[0]);
      half4 *z = reinterpret_cast<half4 *>(&out[0]);
      for (unsigned i = 0; i < out.size() / 4; ++i) { half4 s = x[i] * y[i]; s += x[i]; z[i] = s / y[i] - x[i]; }""",
    "pairs": """
      const half2 *x = reinterpret_cast<const half2 *>(&a[0]), *y = reinterpret_cast<const half2 *>(&b[0]);
      half2 *z = reinterpret_cast<half2 *>(&out[0]);
      for (unsigned i = 0; i < out.size() / 2; ++i) {
        half2 s; s = {x[i][0] * y[i][0], x[i][1] * y[i][1]};
        s += x[i]; z[i] = s / y[i] - x[i]; }""",
    "named elements": """
      const half4 *x = reinterpret_cast<const half4 *>(&a[0]), *y = reinterpret_cast<const half4 *>(&b[0]);
      half4 *z = reinterpret_cast<half4 *>(&out[0]);
      for (unsigned i = 0; i < out.size() / 4; ++i) {
        half4 s = x[i] * y[i]; s.x += x[i].x; s.y += x[i].y; s.z += x[i].z; s.w += x[i].w; z[i] = s / y[i] - x[i]; }""",
}
COMPILERS = ["", *([found] if (found := shutil.which("clang++")) else [])]


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("name", CODELETS)
def test_codelets_round_after_every_operation(cases, tmp_path, name, compiler):
    source = tmp_path / "codelets.cpp"
    source.write_text(f"{HEADERS}class V : public Vertex {{ public: {FIELDS} void compute() {{ {CODELETS[name]} }} }};\n")
    a, b = drawn(3, 4096), drawn(4, 4096)
    environment = {"SNNC_CODELET_CXX": compiler} if compiler else {}
    text = cases.run(
        "halves", "codelet", source, "V", "half", stdin=" ".join(map(str, np.concatenate([a, b]).view(np.uint16))), **environment
    )  # fmt: skip
    with np.errstate(all="ignore"):
        compare(np.array(text.split(), dtype=np.uint16).view(np.float16), (a * b + a) / b - a)


def table(tmp_path, text):
    """Return the names of the vertices of a codelet file."""
    source = tmp_path / "codelets.cpp"
    source.write_text(text)
    from snnc.backends.emulator import build

    lines = popc.compile_codelets(source, build.library()).read_text().splitlines()
    return {line.split("\t")[1] for line in lines if line.startswith("vertex\t")}


DIALECTS = {
    "designators in any order": """
      struct Cost { int first; float second; int third; };
      static Cost cost() { return Cost{.third = 3, .first = 1}; }
      struct V : Vertex { Output<float> y; bool compute() {
        Cost c = { .second = 2.f,
                   .first = cost().third };
        *y = c.second + c.first + cost().first; return true; } };""",
    "compute of a base": """
      struct Base : Vertex { Output<float> y; bool compute() { *y = 2; return true; } };
      struct V : Base { bool compute() { bool done = Base::compute(); *y += 1; return done; } };""",
    "braces assigned": """
      struct V : Vertex { Output<float> y; bool compute() { float2 v; v = {1.f, 2.f}; *y = v[0] + v[1]; return true; } };""",
    "integers of fixed width": """
      struct V : Vertex { Output<float> y; uint16_t n; bool compute() { *y = float(int64_t(n)); return true; } };""",
    "lists": """
      #include <poplar/VectorListTypes.hpp>
      struct V : Vertex {
        Input<VectorList<float, VectorListLayout::DELTAN>> x;
        Output<float> y;
        bool compute() { *y = x[0][0]; return true; } };""",
    "constants and functions of vectors": """
      #include <ipu_vector_math>
      template <class T> struct Numbers; template <> struct Numbers<half> { static inline constexpr half4 zero = {0.f, 0.f, 0.f, 0.f}; };
      struct V : Vertex {
        Input<Vector<half, VectorLayout::ONE_PTR, 8>> x;
        Output<float> y;
        bool compute() {
          const half4 *v = (const half4 *)&x[0];
          half4 s = ipu::absadd(Numbers<half>::zero, v[0] - half(ipu::rsqrt(4.f))) * half(2);
          *y = ipu::sum(s)[0] + ipu::max(1.f, ipu::sigmoid(0.f)); return true; } };""",
    "vectors as arguments of templates": """
      template <class T> struct W : Vertex { Output<float> y; bool compute() { T v{}; *y = float(v[0]); return true; } };
      template class W<half4>;
      struct V : Vertex { Output<float> y; bool compute() { *y = 1; return true; } };""",
}


@pytest.mark.parametrize("name", DIALECTS)
def test_codelets_of_other_compilers_are_accepted(tmp_path, name):
    names = table(tmp_path, HEADERS + DIALECTS[name])
    assert "V" in names
    assert not any("snnc" in n for n in names), names


def test_designators_find_their_places_one_by_one(tmp_path):
    source = tmp_path / "a.cpp"
    text = "S s{.d = 4, .b = f(1, 2), .a = {3}};\n"
    source.write_text(text)
    column = text.rindex("}") + 1
    error = f"{source}:1:{column}: error: designator order for field 'S::{{}}' does not match declaration order in 'S'"
    first = in_declared_order(source, tmp_path, error.format("b"))
    assert first.read_text().splitlines()[1] == "S s{.b = f(1, 2),.d = 4, .a = {3}};"
    assert in_declared_order(source, tmp_path, error.format("d")) is None, "it is the first already"
    assert in_declared_order(source, tmp_path, "a.cpp:1:2: error: expected ';'") is None


def test_errors_of_a_codelet_are_those_of_its_own_text(tmp_path):
    with pytest.raises(BuildError, match="unheardOf"):
        table(tmp_path, HEADERS + "struct V : Vertex { Output<half> y; bool compute() { half4 v; *y = unheardOf; return true; } };")


def test_a_compiler_of_codelets_that_is_not_there_is_named(monkeypatch):
    monkeypatch.setenv("SNNC_CODELET_CXX", "/nowhere/clang++ -v")
    with pytest.raises(ToolMissingError, match="SNNC_CODELET_CXX"):
        popc.codelet_compiler()
