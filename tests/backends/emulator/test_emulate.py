"""``snnc emulate``, the install prefix and popc: programs written for Poplar, built outside snnc."""

import json
import os
import shutil
import subprocess

import pytest
from wide import WIDE

from snnc.backends.emulator import build, emulate, popc, sources
from snnc.backends.emulator.emulate import build_program
from snnc.backends.toolchain import compilers
from snnc.cli.main import run_command
from snnc.compiler.errors import BuildError, ToolMissingError
from snnc.compiler.files.cache import cache_dir

HOST = """
#include <poplar/DeviceManager.hpp>
#include <poplar/Engine.hpp>
#include <poplar/Graph.hpp>
#include <popops/ElementWise.hpp>
#include <popops/codelets.hpp>
#include <iostream>
using namespace poplar;
using namespace poplar::program;
unsigned helper();
int main(int argc, char **argv) {
  auto devices = DeviceManager::createDeviceManager().getDevices(TargetType::IPU, 1);
  if (devices.empty())
    return 9;
  Graph graph(devices[0]);
  popops::addCodelets(graph);
  graph.addCodelets("parts/double.gp");
  Tensor t = graph.addConstant<float>(FLOAT, {3}, {1, 2, 3}), out = graph.addVariable(FLOAT, {3}, "out");
  graph.setTileMapping(t, 0);
  graph.setTileMapping(out, 1);
  ComputeSet cs = graph.addComputeSet("double");
  VertexRef v = graph.addVertex(cs, "Double", {{"in", t}, {"out", out}});
  graph.setTileMapping(v, 1);
  Sequence prog{Execute(cs)};
  prog.add(PrintTensor("sum", popops::add(graph, t, out, prog)));
  Engine engine(graph, prog);
  engine.loadAndRun(devices[0]);
  std::cout << devices[0].getTarget().getNumTiles() << " " << LIMIT;
  for (int i = 1; i < argc; ++i)
    std::cout << " [" << argv[i] << "]";
  std::cout << std::endl;
  return int(helper());
}
"""
HELPER = "unsigned helper() { return 6; }\n"
CODELET = """
#include <poplar/Vertex.hpp>
class Double : public poplar::Vertex {
public:
  poplar::Input<poplar::Vector<float>> in;
  poplar::Output<poplar::Vector<float>> out;
  void compute() {
    for (unsigned i = 0; i < out.size(); ++i)
      out[i] = LIMIT / 21 * in[i];
  }
};
"""


@pytest.fixture(autouse=True)
def _no_optimisation(monkeypatch):
    """Unless all cases run, compile host programs, which run for milliseconds, without optimisation."""

    def compile_program(sources, output, *, flags, **options):
        build.compile_program(sources, output, flags=["-O0" if flag == "-O2" else flag for flag in flags], **options)

    if not os.environ.get(WIDE):
        monkeypatch.setattr(emulate, "compile_program", compile_program)


@pytest.fixture
def program(tmp_path):
    for name, text in (("host.cpp", HOST), ("helper.cpp", HELPER), ("double.cpp", CODELET)):
        (tmp_path / name).write_text(text)
    return [str(tmp_path / name) for name in ("host.cpp", "helper.cpp", "double.cpp")]


def test_a_program_gets_its_codelets_arguments_and_macros_and_its_exit_code_comes_back(cases, program, tmp_path, capfd):
    profile = tmp_path / "run.json"
    arguments = ["emulate", *program, "-D", "LIMIT=42", "--profile", str(profile), "--ipu", "ipu1", "--", "a b", "--profile"]
    assert run_command(arguments) == 6
    printed = capfd.readouterr()
    assert printed.out == "1216 42 [a b] [--profile]\n"
    assert "sum: [3.0000000 6.0000000 9.0000000]" in printed.err
    steps = json.loads(profile.read_text())["steps"]
    assert any(step["name"] == "double" and step["executions"] == 1 for step in steps)
    assert run_command(["emulate", *program, "-D", "LIMIT=42", "--ipu", "none"]) == 9


TOOLS = """
#pragma once
#include <vector>
const unsigned step = 2;
static auto later = [=](unsigned x) { return x + step; };
const auto total = [ & ](const std::vector<unsigned> &values) -> unsigned {
  unsigned sum = 0;
  const auto each = [&](unsigned x) { sum += x; };
  for (unsigned x : values)
    each(later(x));
  return sum;
};
"""
OLDER = """
#include "tools.hpp"
#include <cstdio>
int main() { std::printf("%u", total({1, 30, 5})); }
"""
WITH_BOOST = """
#include <boost/program_options.hpp>
#include <boost/timer/timer.hpp>
#include <iostream>
#include <numeric>
namespace po = boost::program_options;
int main(int argc, char **argv) {
  unsigned ipus = 0;
  bool model = false;
  po::options_description all("Options");
  all.add_options()("help,h", "Shows this.")
      ("ipus", po::value<unsigned>(&ipus)->default_value(1), "How many.")
      ("model", po::bool_switch(&model)->default_value(false), "A model.")
      ("sizes,s", po::value<std::vector<unsigned>>()->multitoken(), "Sizes.")
      ("name", po::value<std::string>()->required(), "Name.")
      ("file", po::value<std::string>(), "File.");
  po::positional_options_description positions;
  positions.add("file", 1);
  po::variables_map given;
  try {
    po::store(po::command_line_parser(argc, argv).options(all).positional(positions).run(), given);
    if (given.count("help"))
      std::cout << all;
    po::notify(given);
    boost::timer::cpu_timer timer;
    const auto &sizes = given["sizes"].as<std::vector<unsigned>>();
    std::cout << ipus << model << " " << std::accumulate(sizes.begin(), sizes.end(), 0u) << " " << given["name"].as<std::string>() << " "
              << given["file"].as<std::string>() << " " << given["ipus"].defaulted() << (timer.elapsed().wall >= 0) << "\\n";
  } catch (const po::error &error) {
    std::cout << error.what() << "\\n";
  }
}
"""


def test_what_older_compilers_took_builds(cases, tmp_path):
    (tmp_path / "tools.hpp").write_text(TOOLS)
    host = tmp_path / "older.cpp"
    host.write_text(OLDER)
    assert subprocess.run([build_program([host]).path], capture_output=True, text=True, check=True).stdout == "42"


def test_what_programs_have_from_boost_builds(cases, tmp_path):
    host = tmp_path / "with_boost.cpp"
    host.write_text(WITH_BOOST)
    # The stand-ins are found first, whether or not Boost is there.
    program = build_program([host], include=[build.FALLBACK], flags=["-lboost_program_options"])

    def run(*arguments):
        return subprocess.run([program.path, *arguments], capture_output=True, text=True, check=True).stdout

    assert run("in.npz", "--ipus=4", "--model", "-s", "1", "2", "30", "--name", "x", "--sizes", "5") == "41 38 x in.npz 01\n"
    assert run("--ipus", "two", "--name", "x") == "the argument ('two') is invalid\n"
    assert run("--nonsense") == "unrecognised option '--nonsense'\n"
    assert run("-s", "1").endswith("the option '--name' is required but missing\n")
    assert "-h [ --help ]" in run("-h", "--name", "x", "-s1", "f")


def test_what_is_missing_or_does_not_compile_is_named(program, tmp_path, capsys, monkeypatch):
    assert run_command(["emulate", str(tmp_path / "nowhere.cpp")]) == BuildError.exit_code
    assert "nowhere.cpp: no such file" in capsys.readouterr().err
    assert run_command(["emulate"]) == 2
    assert "needs a host program" in capsys.readouterr().err
    assert run_command(["emulate", *program, "--ipu", "ipu7"]) == 2
    assert "ipu21" in capsys.readouterr().err
    broken = tmp_path / "broken.cpp"
    broken.write_text("#include <poplar/Vertex.hpp>\nclass X : public poplar::Vertex { nonsense };\n")
    assert run_command(["emulate", program[0], str(broken)]) == BuildError.exit_code
    text = capsys.readouterr().err
    assert "broken.cpp" in text
    assert "nonsense" in text
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setattr(compilers.shutil, "which", lambda name: None)
    monkeypatch.setattr(compilers.importlib.util, "find_spec", lambda name: None)
    assert run_command(["emulate", *program]) == ToolMissingError.exit_code == 3


def test_the_prefix_serves_linkers_and_popc(cases, program, tmp_path, capsys):
    assert run_command(["emulate", "--prefix"]) == 0
    prefix = capsys.readouterr().out.strip()
    assert prefix == str(build.complete_prefix())
    flags = [f"-I{prefix}/include", f"-L{prefix}/lib", f"-Wl,-rpath,{prefix}/lib", "-DLIMIT=1"]
    made = tmp_path / "made"
    libraries = ["-lpopops", "-lpoputil", "-lpoplin", "-lpoplar"]
    subprocess.run([*build.compiler(), "-std=c++17", "-pthread", *program[:2], *flags, *libraries, "-o", made], check=True)
    (tmp_path / "parts").mkdir()
    command = [f"{prefix}/bin/popc", program[2], "-o", "parts/double.gp", "-O3", "-g", "--target", "ipu2", "-DLIMIT=63", "-Wall"]
    subprocess.run(command, check=True, cwd=tmp_path, capture_output=True)
    result = subprocess.run([made], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert result.returncode == 6
    assert "sum: [4.0000000 8.0000000 12.0000000]" in result.stderr


@pytest.mark.wide
def test_the_enable_script_serves_a_build_that_knows_nothing_of_the_emulator(cases, program, tmp_path):
    prefix = build.complete_prefix()
    libraries = set(cache_dir().glob("emulator-*"))
    (tmp_path / "older.cpp").write_text("auto twice = [=](int x) { return 2 * x; };\nunsigned helper() { return twice(3); }\n")
    commands = (
        f". {prefix}/enable.sh && g++ -std=c++17 -pthread -DLIMIT=1 {program[0]} older.cpp -o made"
        " $POPLAR_SDK_ENABLED/lib/libpopops.so -lpoplar"
        f" && mkdir parts && popc {program[2]} -o parts/double.gp -DLIMIT=63 && ./made && exit 1; code=$?; popc --version; exit $code"
    )
    result = subprocess.run(["bash", "-c", commands], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert result.returncode == 6, result.stderr
    assert "sum: [4.0000000 8.0000000 12.0000000]" in result.stderr
    # In the form that programs cut the version out of: the third word.
    assert result.stdout.splitlines()[-2].split()[:3] == ["POPLAR", "version", popc.API_VERSION]
    assert set(cache_dir().glob("emulator-*")) == libraries, "popc has the library of its prefix and builds no other"


CMAKE = """
cmake_minimum_required(VERSION 3.16)
project(t CXX)
set(CMAKE_CXX_STANDARD 17)
find_package(poplar REQUIRED)
find_package(popops REQUIRED)
add_executable(targets host.cpp older.cpp)
target_compile_definitions(targets PRIVATE LIMIT=1)
target_link_libraries(targets poplar popops)
poplar_add_codelets(codelets SOURCES double.cpp OUTPUT parts/double.gp FLAGS -O3 -DLIMIT=63)
get_target_property(POPC popc_bin LOCATION)
if(NOT POPC STREQUAL POPC_EXECUTABLE)
  message(FATAL_ERROR "popc_bin is ${POPC}")
endif()
add_subdirectory(paths)
"""
PATHS = """
find_library(POPLAR NAMES poplar PATHS "$ENV{POPLAR_SDK_ENABLED}/lib" REQUIRED)
find_library(POPOPS NAMES popops PATHS "$ENV{POPLAR_SDK_ENABLED}/lib" REQUIRED)
add_executable(paths ../host.cpp ../older.cpp)
target_compile_definitions(paths PRIVATE LIMIT=1)
target_link_libraries(paths ${POPOPS} ${POPLAR} pthread)
"""


@pytest.mark.wide
@pytest.mark.skipif(shutil.which("cmake") is None, reason="no cmake")
def test_cmake_builds_with_targets_and_with_paths_of_libraries_and_compiles_codelets(cases, program, tmp_path):
    (tmp_path / "older.cpp").write_text("auto twice = [=](int x) { return 2 * x; };\nunsigned helper() { return twice(3); }\n")
    (tmp_path / "CMakeLists.txt").write_text(CMAKE)
    (tmp_path / "paths").mkdir()
    (tmp_path / "paths" / "CMakeLists.txt").write_text(PATHS)

    def run(commands, folder):
        enabled = f". {build.complete_prefix()}/enable.sh && {commands}"
        return subprocess.run(["bash", "-c", enabled], cwd=tmp_path / folder, capture_output=True, text=True, check=False)

    result = run("cmake -S . -B made && cmake --build made", ".")
    assert result.returncode == 0, result.stdout + result.stderr
    for made in ("./targets", "paths/paths"):
        result = run(made, "made")
        assert result.returncode == 6, result.stderr
        assert "sum: [4.0000000 8.0000000 12.0000000]" in result.stderr


def test_what_older_compilers_took_compiles_by_the_launcher_and_other_errors_stay(cases, tmp_path, capfd):
    (tmp_path / "older.cpp").write_text("auto twice = [=](int x) { return 2 * x; };\nint f() { return twice(LIMIT); }\n")
    (tmp_path / "wrong.cpp").write_text("auto twice = [](int x) { return missing; };\n")
    launcher = [build.complete_prefix() / "bin" / "launcher", *build.compiler()]
    made = tmp_path / "older.o"
    command = ["-DLIMIT=4", "-MD", "-MF", tmp_path / "older.d", "-o", made, "-c", tmp_path / "older.cpp"]
    subprocess.run([*launcher, *command], check=True)
    assert made.exists()
    assert subprocess.run([*launcher, "-c", tmp_path / "wrong.cpp", "-o", made], check=False).returncode != 0
    assert "missing" in capfd.readouterr().err


THRICE = """
#include <poplar/Engine.hpp>
#include <poplar/IPUModel.hpp>
int main(int, char **argv) {
  poplar::Device device = poplar::IPUModel("ipu2").createDevice();
  poplar::Graph graph(device);
  graph.addCodelets(argv[1]);
  const poplar::Tensor t = graph.addVariable(poplar::INT, {1}, "t");
  graph.setTileMapping(t, 0);
  graph.setInitialValue(t, 14);
  graph.createHostRead("t", t);
  const poplar::ComputeSet cs = graph.addComputeSet();
  graph.setTileMapping(graph.addVertex(cs, "Thrice", {{"x", t[0]}}), 0);
  poplar::Engine engine(graph, poplar::program::Execute(cs));
  engine.loadAndRun(device);
  int result = 0;
  engine.readTensor("t", &result, &result + 1);
  return result == 42 ? 0 : 1;
}
"""


def test_popc_joins_several_sources_and_leaves_assembly_out(cases, tmp_path, capsys):
    for name in ("one", "two"):
        (tmp_path / f"{name}.cpp").write_text(f"#include <poplar/Vertex.hpp>\nstruct V{name} : poplar::Vertex {{ void compute() {{}} }};\n")
    (tmp_path / "three.S").write_text(".globl __runCodelet_Vtwo\n.global __runCodelet_Vfour\n__runCodelet_Vtwo:\n  exitz $mzero\n")
    files = [str(tmp_path / name) for name in ("one.cpp", "two.cpp", "three.S")]
    assert popc.main([*files, "-o", str(tmp_path / "all.gp")]) == 0
    assert "three.S is IPU assembly and is skipped; if the program uses Vtwo, Vfour, the C++ version runs" in capsys.readouterr().err
    table = (tmp_path / "all.gp").read_text()
    assert "vertex\tVone\t" in table
    assert "vertex\tVtwo\t" in table
    assert popc.main([files[2]]) == BuildError.exit_code
    # Build files that link it with the rest go on.
    assert popc.main([files[2], "-o", str(tmp_path / "assembly.gp")]) == 0
    assert popc.main([str(tmp_path / "assembly.gp"), files[0], "-o", str(tmp_path / "rest.gp")]) == 0
    assert (tmp_path / "rest.gp").read_text().count("\nvertex\t") == 1


def test_warnings_about_codelets_are_not_about_the_headers_of_the_emulator(cases, tmp_path, monkeypatch):
    """A program's popc may be told to stop at warnings, and `enable.sh` names the headers in CPATH."""
    monkeypatch.setenv("CPATH", str(build.include_dir()))
    monkeypatch.setenv("CXX", shutil.which("g++"))
    source = tmp_path / "halves.cpp"
    source.write_text(
        "#include <poplar/Vertex.hpp>\n#include <TileConstants.hpp>\n#include <arch/gc_tile_defines.h>\n"
        "struct Halves : poplar::Vertex { poplar::InOut<half> x; void compute() { *x = half(2) * *x; } };\n"
        "void twice(Halves &v) { v.compute();\n(v.compute()); }\n"
        "struct Mine { int compute(int x) { return CTXT_WORKERS * x; }\nvoid all() { compute(1); } };\nvoid run(Mine m) { m.all(); }\n"
    )
    assert popc.main([str(source), "-Wall", "-Wextra", "-Wold-style-cast", "-Werror", "-o", str(tmp_path / "halves.gp")]) == 0


def test_popc_links_sources_and_tables_into_one_library(cases, tmp_path, capsys):
    """Build files compile each source to a table of its own, once for each target, and then link the tables."""
    texts = {
        "helper": "int thrice(int x) { return 3 * x; }\n",
        "vertex": "#include <poplar/Vertex.hpp>\nint thrice(int x);\n"
        "struct Thrice : poplar::Vertex { poplar::InOut<int> x; void compute() { *x = thrice(*x); } };\n",
    }
    parts = []
    for name, text in texts.items():
        (tmp_path / f"{name}.cpp").write_text(text)
        for target in ("ipu2", "cpu"):
            parts.append(str(tmp_path / f"{name}_{target}.gp"))
            assert popc.main([str(tmp_path / f"{name}.cpp"), "--target", f'["{target}"]', "-o", parts[-1]]) == 0
    joined = tmp_path / "joined.gp"
    assert popc.main([*parts, "--target", '["ipu2","cpu"]', "-o", str(joined)]) == 0
    assert joined.read_text().count("\nvertex\tThrice\t") == 1
    (tmp_path / "host.cpp").write_text(THRICE)
    cases.compile(tmp_path / "host.cpp", tmp_path / "host")
    for name in ("joined.gp", "joined.elf"):  # a program may choose any name
        assert popc.main([*parts, "-o", str(tmp_path / name)]) == 0
        subprocess.run([tmp_path / "host", name], check=True, cwd=tmp_path)
    functions = tmp_path / "functions.gp"
    assert popc.main([*parts[:2], "-o", str(functions)]) == 0, "a build file may have a library of functions"
    assert "\nvertex\t" not in functions.read_text()
    assert popc.main([str(tmp_path / "helper.cpp")]) == BuildError.exit_code
    assert popc.main(parts[:2]) == BuildError.exit_code, "nobody could use the vertices of a table without any"
    (tmp_path / "foreign.gp").write_text("!<arch>")
    assert popc.main([parts[0], str(tmp_path / "foreign.gp"), "-o", str(joined)]) == BuildError.exit_code
    assert "foreign.gp.o is missing" in capsys.readouterr().err


@pytest.mark.skipif(compilers.is_clang(popc.codelet_compiler()), reason="GCC's flags")
def test_functions_in_c_compile(cases, tmp_path):
    source = tmp_path / "made.c"
    source.write_text("#include <stdlib.h>\nint *made(int n) {\n  int *found = malloc(n * sizeof(int));\n  return found;\n}\n")
    assert popc.main([str(source), "-o", str(tmp_path / "made.gp")]) == 0


def test_codelets_that_are_written_only_for_the_hardware_compile(cases, tmp_path):
    """Without `__IPU__` this one needs a library of the host, as headers that host and codelets share may."""
    source = tmp_path / "hardware.cpp"
    source.write_text(
        "#ifdef __IPU__\n#include <poplar/HalfFloat.hpp>\n#else\n#include <library_of_the_host.hpp>\n#endif\n"
        "#include <poplar/Vertex.hpp>\n#include <cmath>\n"
        "struct Angle : poplar::Vertex { poplar::InOut<float> x; void compute() { *x = atan2(*x, 1.f) + 1.f; } };\n"
    )
    assert popc.main([str(source), "-Wdouble-promotion", "-Werror", "-o", str(tmp_path / "hardware.gp")]) == 0
    assert "vertex\tAngle\t" in (tmp_path / "hardware.gp").read_text()


def test_vertices_that_exist_only_on_the_hardware_are_found(cases, tmp_path):
    source = tmp_path / "hardware.cpp"
    source.write_text(
        "#include <poplar/Vertex.hpp>\n#ifdef __IPU__\n"
        "struct Reserve : poplar::MultiVertex { bool compute(unsigned worker) { return true; } };\n#endif\n"
    )
    assert popc.main([str(source), "-o", str(tmp_path / "hardware.gp")]) == 0
    assert "vertex\tReserve\t" in (tmp_path / "hardware.gp").read_text()


def test_popc_writes_assembly(cases, tmp_path):
    (tmp_path / "one.cpp").write_text("#include <poplar/Vertex.hpp>\nstruct Vone : poplar::Vertex { void compute() {} };\n")
    assert popc.main([str(tmp_path / "one.cpp"), "--S", "-o", str(tmp_path / "one.s")]) == 0
    assert "Vone7compute" in (tmp_path / "one.s").read_text()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("long x; long int y; unsigned long z;", "int x; int y; unsigned int z;"),
        ("long long x; long double y; longer z;", "long long x; long double y; longer z;"),
        ('f("long"); // long\n/* long */ long', 'f("long"); // long\n/* long */ int'),
        ('__attribute__((target("supervisor"))) void f();', " void f();"),
    ],
)
def test_codelets_become_portable(text, expected):
    assert sources.portable(text) == expected


def test_joint_tables_are_joined_again(cases, tmp_path):
    for name in ("one", "two", "three"):
        (tmp_path / f"{name}.cpp").write_text(f"#include <poplar/Vertex.hpp>\nstruct V{name} : poplar::Vertex {{ void compute() {{}} }};\n")
    one, two, three = (str(tmp_path / f"{name}.cpp") for name in ("one", "two", "three"))
    assert popc.main([one, two, "-o", str(tmp_path / "first.gp")]) == 0
    assert popc.main([str(tmp_path / "first.gp"), three, "-o", str(tmp_path / "all.gp")]) == 0
    assert popc.main([str(tmp_path / "all.gp"), str(tmp_path / "first.gp"), "-o", str(tmp_path / "again.gp")]) == 0
    for name in ("one", "two", "three"):
        assert (tmp_path / "again.gp").read_text().count(f"\nvertex\tV{name}\t") == 1


ASSEMBLY = """
#include <poplar/Vertex.hpp>
#include "shared.hpp"
struct Doubled : poplar::Vertex {
  poplar::InOut<int> x;
  void compute() { asm volatile("" ::: "memory"); *x = 2 * *x; }
};
struct Packed : poplar::Vertex {
  poplar::InOut<int> x;
  void compute() {
    unsigned long long packed = __builtin_ipu_tapack(&*x, &*x, &*x);
    register int *address asm("$m2") = &*x;
    __asm__ volatile(R"(
      ld32 $m0, %[at], $m15, 0
      stm32 $m0, %[at]+=, $m15
    )" : [at] "+r"(address) : [packed] "r"(packed) : "$m0", "memory");
    *x = 3 * *x;
  }
};
struct Waiting : poplar::Vertex { poplar::InOut<int> x; void compute() { wait(); } };
struct Later : poplar::Vertex {
  poplar::InOut<int> x;
  void compute() {
    if (++*x > 16)
      asm("trap 0");
  }
};
"""

USES_ASSEMBLY = """
#include <iostream>
#include <poplar/Engine.hpp>
#include <poplar/IPUModel.hpp>
int main(int, char **argv) {
  poplar::Device device = poplar::IPUModel("ipu2").createDevice();
  poplar::Graph graph(device);
  graph.addCodelets("codelets.gp");
  const poplar::Tensor t = graph.addVariable(poplar::INT, {8}, "t");
  const poplar::ComputeSet cs = graph.addComputeSet();
  for (unsigned tile = 0; tile < 8; ++tile) {
    graph.setTileMapping(t[tile], tile);
    graph.setTileMapping(graph.addVertex(cs, argv[1], {{"x", t[tile]}}), tile);
  }
  graph.setInitialValue(t, 14);
  graph.createHostRead("t", t);
  poplar::Engine engine(graph, poplar::program::Execute(cs));
  engine.load(device);
  for (int i = 0; i < 3; ++i) {
    try {
      engine.run();
    } catch (const poplar::application_runtime_error &error) {
      std::cout << "run " << i << ": " << error.what() << "\\n";
    }
  }
  int result[8];
  engine.readTensor("t", result, result + 8);
  std::cout << "results " << result[0] << " " << result[7] << "\\n";
}
"""


def test_instructions_of_an_ipu_stop_only_the_vertices_that_reach_them(cases, tmp_path):
    (tmp_path / "shared.hpp").write_text('inline void wait() {\n  if (true)\n    asm("sync 0x1\\n\\t");\n}\n')
    source, host = tmp_path / "codelets.cpp", tmp_path / "host.cpp"
    source.write_text(ASSEMBLY)
    assert popc.main([str(source), "-Wall", "-Werror", "-o", str(tmp_path / "codelets.gp")]) == 0
    host.write_text(USES_ASSEMBLY)
    cases.compile(host, tmp_path / "host")
    threads = os.environ | {"SNNC_THREADS": "2", "SNNC_PARALLEL_MICROSECONDS": "0"}  # from the second run on, tiles share two threads

    def printed(vertex: str) -> str:
        return subprocess.run([tmp_path / "host", vertex], capture_output=True, text=True, cwd=tmp_path, check=True, env=threads).stdout

    refused = "reached an instruction that the emulator cannot run: "
    assert printed("Doubled") == "results 112 112\n"
    packed = printed("Packed")
    assert packed.count(f"a vertex on tile 0 {refused}codelets.cpp:11: __builtin_ipu_tapack, which only an IPU has") >= 1
    assert packed.endswith("results 14 14\n")
    assert f"{refused}shared.hpp:3: assembly of an IPU (sync 0x1)" in printed("Waiting")
    later = printed("Later").splitlines()
    assert [line[:5] for line in later[:-1]] == ["run 2"], later
    assert later[0].endswith("codelets.cpp:25: assembly of an IPU (trap 0)")


def test_operands_of_assembly_may_be_constants_of_an_ipu(cases, tmp_path):
    (tmp_path / "zone.cpp").write_text(
        '#include <poplar/Vertex.hpp>\nstruct V : poplar::Vertex { void compute() { asm("sync %0" : : "i"(TEXCH_SYNCZONE_LOCAL)); } };\n'
    )
    assert popc.main([str(tmp_path / "zone.cpp"), "-o", str(tmp_path / "zone.gp")]) == 0


def test_errors_besides_assembly_are_reported(cases, tmp_path, capsys):
    (tmp_path / "wrong.cpp").write_text(
        '#include <poplar/Vertex.hpp>\nstruct V : poplar::Vertex { void compute() { asm("sync 0x1"); } };\nint f() { return missing; }\n'
    )
    assert popc.main([str(tmp_path / "wrong.cpp")]) == BuildError.exit_code
    assert "missing" in capsys.readouterr().err
