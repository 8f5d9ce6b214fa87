"""The tool chain: found, or missing with a clear error; cached; usable from CMake; headers compile without warnings."""

import ctypes
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from wide import sampled

from snnc.backends.emulator import build, popc
from snnc.backends.toolchain import compilers
from snnc.backends.toolchain.cache import cached_file
from snnc.compiler.errors import BuildError, ToolMissingError

CASES = Path(__file__).parent / "cases"
STRICT = ["-std=c++17", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only"]


def headers(folder):
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())


@pytest.mark.parametrize("header", sampled(headers(build.include_dir()), 48))
def test_a_header_stands_alone_and_compiles_without_warnings(header):
    command = [*build.compiler(), *STRICT, f"-I{build.include_dir()}", "-x", "c++", "-"]
    source = f"#include <{header}>\n#include <{header}>\n"
    result = subprocess.run(command, input=source, text=True, capture_output=True, check=False)
    assert result.returncode == 0, result.stderr


def test_codelets_compile_without_warnings(cases):
    source = cases.folder.parent / "codelets.cpp"
    source.write_text(
        """
#include <poplar/Vertex.hpp>
#include <ipudef.h>
#include <ipu_vector_math>
#include <print.h>
class Mixed : public poplar::Vertex {
public:
  poplar::Input<poplar::Vector<float, poplar::VectorLayout::ONE_PTR, 8>> in;
  poplar::InOut<poplar::Vector<half>> halves;
  poplar::Input<poplar::Vector<unsigned short, poplar::VectorLayout::COMPACT_PTR, 4>> ids;
  poplar::Output<float> out;
  bool compute() {
    const float2 *pairs = reinterpret_cast<const float2 *>(&in[0]);
    float2 sum = ipu::exp(pairs[0]);
    for (unsigned i = 0; i < halves.size(); ++i)
      halves[i] = static_cast<half>(halves[i] * half(2));
    *out = sum[0] + sum[1] + ids[0];
    SNNC_COUNT_CYCLES(12);
    return true;
  }
};
"""
    )
    table = popc.compile_codelets(source, build.library(), ["-Wall", "-Wextra", "-Werror"]).read_text()
    assert "vertex\tMixed\tvertex\t64\t" in table
    assert "field\tin\t0\tvector\tinput\tfloat\tONE_PTR\t8" in table
    assert "field\thalves\t16\tvector\tinout\thalf\tSPAN\t2" in table
    assert "field\tids\t32\tvector\tinput\tunsigned short\tCOMPACT_PTR\t4" in table
    assert "field\tout\t48\tscalar\toutput\tfloat\tSPAN\t1" in table


def test_popc_writes_a_table_that_add_codelets_takes(cases, tmp_path):
    source = tmp_path / "codelets.cpp"
    source.write_text("#include <poplar/Vertex.hpp>\nclass Nothing : public poplar::Vertex { public: void compute() {} };\n")
    assert popc.main([str(source), "-o", str(tmp_path / "made.gp")]) == 0
    host = tmp_path / "host.cpp"
    host.write_text(
        """
#include <poplar/Engine.hpp>
#include <poplar/IPUModel.hpp>
int main() {
  poplar::Device device = poplar::IPUModel("ipu2").createDevice();
  poplar::Graph graph(device);
  graph.addCodelets("made.gp");
  const poplar::ComputeSet cs = graph.addComputeSet();
  graph.setTileMapping(graph.addVertex(cs, "Nothing"), 0);
  poplar::Engine(graph, poplar::program::Execute(cs)).loadAndRun(device);
}
"""
    )
    cases.compile(host, tmp_path / "host")
    source.unlink()
    subprocess.run([tmp_path / "host"], check=True, cwd=tmp_path, env={"PATH": "/nowhere"})
    # Build files copy only the table; if the folder moves as a whole, the library moves with it.
    for name in ("alone", "whole"):
        (tmp_path / name).mkdir()
    shutil.copy(tmp_path / "made.gp", tmp_path / "alone")
    subprocess.run([tmp_path / "host"], check=True, cwd=tmp_path / "alone", env={"PATH": "/nowhere"})
    for part in ("made.gp", "made.gp.so"):
        shutil.move(tmp_path / part, tmp_path / "whole" / part)
    subprocess.run([tmp_path / "host"], check=True, cwd=tmp_path / "whole", env={"PATH": "/nowhere"})
    assert subprocess.run([tmp_path / "host"], check=False, cwd=tmp_path / "alone", capture_output=True).returncode != 0


def test_a_shared_library_runs_inside_python(cases, tmp_path):
    source = tmp_path / "session.cpp"
    source.write_text(
        f"""
#include <poplar/Engine.hpp>
#include <poplar/IPUModel.hpp>
extern "C" int run(int value) {{
  poplar::Device device = poplar::IPUModel("ipu2").createDevice();
  poplar::Graph graph(device);
  graph.addCodelets("{CASES / "codelets.cpp"}");
  const poplar::Tensor t = graph.addVariable(poplar::INT, {{1}}, "t");
  graph.setTileMapping(t, 0);
  graph.setInitialValue(t, value);
  graph.createHostRead("t", t);
  const poplar::ComputeSet cs = graph.addComputeSet();
  const poplar::VertexRef v = graph.addVertex(cs, "Counted", {{{{"data", t}}}});
  graph.setInitialValue(v["cycles"], 7);
  graph.setTileMapping(v, 0);
  poplar::Engine engine(graph, poplar::program::Execute(cs));
  engine.loadAndRun(device);
  int result = 0;
  engine.readTensor("t", &result, &result + 1);
  return 1000 * int(engine.getEmulatorProfile().steps[0].computeCyclesBusiest) + result;
}}
"""
    )
    cases.compile(source, tmp_path / "session.so", shared=True)
    assert ctypes.CDLL(str(tmp_path / "session.so")).run(4) == 42005


def test_popc_names_the_file_and_the_first_error(tmp_path, capsys):
    source = tmp_path / "broken.cpp"
    source.write_text("int f() { return missing; }\n")
    assert popc.main([str(source)]) == BuildError.exit_code
    assert "broken.cpp" in (text := capsys.readouterr().err)
    assert "missing" in text


def test_a_program_that_does_not_compile_is_a_build_error_with_the_first_error(tmp_path):
    source = tmp_path / "broken.cpp"
    source.write_text("int main() { return missing; }\n")
    with pytest.raises(BuildError, match=r"broken\.cpp(.|\n)*missing"):
        build.compile_program([source], tmp_path / "broken")


BETA = """
#include <poplar/Vertex.hpp>
#include <cmath>
using namespace std;
constexpr float beta = 0.9f;
class Beta : public poplar::Vertex {
public:
  poplar::InOut<float> x;
  bool compute() { return *x = beta * *x + std::tgamma(*x) + hypot(*x, 2.0f) + erf(*x), true; }
};
"""


def test_names_of_special_functions_are_free_in_codelets(tmp_path):
    """The library of IPUs has no std::beta; functions that it has are still there."""
    source = tmp_path / "beta.cpp"
    source.write_text(BETA)
    assert "vertex\tBeta\t" in popc.compile_codelets(source, build.library()).read_text()


def test_codelets_that_differ_in_comments_are_compiled_once(tmp_path):
    first, second = tmp_path / "beta.cpp", tmp_path / "commented.cpp"
    first.write_text(BETA)
    second.write_text("// A title\n" + BETA.replace("public:", "public: /* fields\n */\n"))
    table = popc.compile_codelets(first, build.library())
    assert popc.compile_codelets(second, build.library()) == table
    second.write_text(BETA.replace("2.0f", "3.0f"))
    assert popc.compile_codelets(second, build.library()) != table


@pytest.mark.parametrize(("include", "flags"), [('"size.hpp"', []), ("<size.hpp>", []), ("<cmath>", []), ("SIZE", ['-DSIZE="size.hpp"'])])
def test_codelets_are_compiled_again_if_a_header_of_their_own_changes(include, flags, tmp_path):
    """Whether it is included by its own name, instead of the compiler's header, or by a macro."""
    source, header = tmp_path / "sized.cpp", tmp_path / ("cmath" if include == "<cmath>" else "size.hpp")
    vertex = "class Sized : public poplar::Vertex { public: int a[SIZES]; bool compute() { return true; } };"
    source.write_text(f"#include <poplar/Vertex.hpp>\n#include {include}\n{vertex}\n")
    prelude = "#pragma once\n#include <math.h>\n#include_next <cmath>\n" if include == "<cmath>" else "#pragma once\n"
    tables = []
    for size in (1, 2):
        header.write_text(f"{prelude}#define SIZES {size}\n")
        tables.append(popc.compile_codelets(source, build.library(), flags).read_text())
    assert tables[0] != tables[1]


def test_without_a_compiler_the_error_names_what_was_looked_for(monkeypatch):
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setattr(compilers.shutil, "which", lambda name: None)
    monkeypatch.setattr(compilers.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ToolMissingError, match=r"g\+\+, clang\+\+, c\+\+ and the ziglang wheel"):
        compilers.compiler()
    monkeypatch.setenv("CXX", "no-such-compiler -O2")
    with pytest.raises(ToolMissingError, match="no-such-compiler"):
        compilers.compiler()
    assert ToolMissingError.exit_code == 3


def test_the_ziglang_wheel_is_taken_when_nothing_else_is_there(monkeypatch):
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setattr(compilers.shutil, "which", lambda name: None)
    monkeypatch.setattr(compilers.importlib.util, "find_spec", lambda name: object())
    assert compilers.compiler() == [sys.executable, "-m", "ziglang", "c++"]


def test_the_library_is_built_once(cases):
    first = build.library()
    changed = first.stat().st_mtime_ns
    build._prefix.cache_clear()
    assert build.library() == first
    assert first.stat().st_mtime_ns == changed


@pytest.mark.skipif(shutil.which("cmake") is None, reason="no cmake")
def test_cmake_finds_the_package(cases, tmp_path):
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.16)\nproject(t CXX)\nfind_package(poplar REQUIRED)\n"
        "add_executable(t t.cpp)\ntarget_link_libraries(t PRIVATE poplar)\n"
    )
    main = 'int main() { return poplar::IPUModel("ipu2").numIPUs == 1 ? 0 : 1; }'
    (tmp_path / "t.cpp").write_text(f"#include <poplar/IPUModel.hpp>\n{main}\n")
    made = tmp_path / "made"
    subprocess.run(["cmake", "-S", tmp_path, "-B", made, f"-DCMAKE_PREFIX_PATH={build.prefix()}"], check=True, capture_output=True)
    subprocess.run(["cmake", "--build", made], check=True, capture_output=True)
    subprocess.run([made / "t"], check=True)


@pytest.mark.skipif(shutil.which("g++") is None, reason="the prefix has commands for the compilers that are installed")
def test_libraries_may_be_named_before_sources(tmp_path, sanitizer_flags):
    (tmp_path / "made.cpp").write_text("#include <poplar/VersionInfo.hpp>\nint main() { return poplar::versionString().empty(); }\n")
    prefix = build.complete_prefix()
    flags = ["-std=c++17", f"-I{prefix}/include", f"-L{prefix}/lib", f"-Wl,-rpath,{prefix}/lib", *sanitizer_flags]
    subprocess.run([prefix / "bin" / "g++", *flags, "-lpoplar", "-lpopops", tmp_path / "made.cpp", "-o", tmp_path / "made"], check=True)
    subprocess.run([tmp_path / "made"], check=True)


def test_of_several_that_want_the_same_library_one_builds_it(tmp_path, monkeypatch):
    monkeypatch.setenv("SNNC_CACHE", str(tmp_path))
    built = []

    def fill(scratch):
        built.append(scratch)
        time.sleep(0.2)
        (scratch / "lib").mkdir()
        (scratch / "lib" / "libx.so").touch()

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: cached_file("x", "lib/libx.so", fill), range(4)))
    assert found == [tmp_path / "x" / "lib" / "libx.so"] * 4
    assert len(built) == 1


def test_popc_lists_the_names_of_targets(capsys):
    assert popc.main(["--list-targets"]) == 0
    assert capsys.readouterr().out.strip().split(",") == ["cpu", "ipu1", "ipu2", "ipu21"]


def test_codelets_may_define_constants_that_headers_define_here(tmp_path):
    source = tmp_path / "circle.cpp"
    source.write_text(
        "#include <poplar/Vertex.hpp>\n#include <cmath>\nstatic const float M_PI = 3;\n"
        "struct Circle : poplar::Vertex { poplar::InOut<float> x; bool compute() { *x *= M_PI; return true; } };\n"
    )
    assert "vertex\tCircle\t" in popc.compile_codelets(source, build.library()).read_text()
