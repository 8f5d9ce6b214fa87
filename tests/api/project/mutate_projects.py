"""Mutate projects, trained weights, archives and the cache, and check snnc's results.

usage: python tests/api/project/mutate_projects.py [--cases 2000] [--seed 0] [--targets reference,cpu,gc200,poptorch,cuda] [--keep FOLDER]

A case fails on a signal, a hang, a traceback, an error without a code, an exit code other than 0, 2 and 3, or numbers other than those of
the project as compiled. With ``relisted`` damage, where the list of files contains the hashes of the damaged files, a project is another
project: it may run, with different numbers, if nothing is executed.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np

STEPS, BATCH = 5, 2
TARGETS = ("reference", "cpu", "gc200", "poptorch", "cuda")
TIMEOUT, BUILDING = 120, 1200
"""Seconds after which a case hangs, and a project is not built."""
MEMORY = 8 << 30
VALUES = (None, True, -1, 0, 1e300, 2**63, 10**30, float("nan"), "", "x" * 5000, "../../etc/passwd", [], {}, [[[]]], [1, "a"])


def network(trained):
    import snnc

    net = snnc.Network("mutated")
    spikes = net.input(6)
    hidden = net.population(5, snnc.LIF(beta=0.9), name="hidden")
    readout = net.population(3, snnc.LI(beta=0.9), name="readout")
    net.connect(spikes, hidden, snnc.Dense())
    net.connect(hidden, hidden, snnc.Dense(), delay=1)
    net.connect(hidden, readout, snnc.Dense())
    return net, {"loss": "ce_count"} if trained else {}


class Originals:
    """A project of each target, compiled once, and what it gives."""

    def __init__(self, folder, targets):
        self.folder = folder
        rng = np.random.default_rng(1)
        x = (rng.random((STEPS, BATCH, 6)) < 0.5).astype(np.float32)
        np.savez(folder / "x.npz", x=x)
        np.savez(folder / "d.npz", x=np.swapaxes(x, 0, 1), y=np.arange(BATCH))
        self.expected = {target: self._make(target) for target in targets}

    def _make(self, target):
        """Compile, train and run in a child: a library that this process has loaded is not one that was damaged later."""
        code, said = in_child(lambda: self._compile(target), self.folder / "said.txt", BUILDING)
        assert code == 0, said
        return numbers(self.folder / "y.npz")

    def _compile(self, target):
        import snnc

        project = self.folder / target
        net, options = network(target != "poptorch")
        snnc.compile(net, target, steps=STEPS, batch=BATCH, output=project, **options).close()
        if target != "poptorch":
            said = command(["train", project, "--data", self.folder / "d.npz"])
            assert said[0] == 0, said
        return command(["run", project, "--inputs", self.folder / "x.npz", "--outputs", self.folder / "y.npz"])


def numbers(path):
    with np.load(path) as archive:
        return {name: archive[name] for name in archive.files}


def command(arguments):
    """Run the command line here; return its exit code and what it said on stderr."""
    from snnc.cli import main as cli

    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
        code = cli.run_command([str(a) for a in arguments])
    return code, said.getvalue()


def in_child(work, report, seconds=TIMEOUT):
    """Run `work`, which returns an exit code and a text, in a child; return how it ended and what it said."""
    child = os.fork()
    if child == 0:
        code = 99
        try:
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            signal.alarm(seconds)
            os.dup2(os.open(report, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), 2)
            code, text = work()
            os.write(2, text.encode(errors="replace"))
        except BaseException:
            import traceback

            os.write(2, traceback.format_exc().encode())
        os._exit(code)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status), report.read_text(errors="replace")


def flip(data, rng):
    if not data:
        return b"\0"
    found = bytearray(data)
    for at in rng.integers(0, len(found), int(rng.integers(1, 5))):
        found[at] ^= 1 << int(rng.integers(8))
    return bytes(found)


def cut(data, rng):
    return data[: int(rng.integers(0, max(1, len(data))))]


def grown(data, rng):
    return data + rng.bytes(int(rng.integers(1, 200)))


def places(value, path=()):
    """Every place in JSON data."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from places(inner, (*path, key))


def json_value(data, rng):
    """Replace, remove or nest one value."""
    try:
        value = json.loads(data)
    except ValueError:
        return flip(data, rng)
    found = [p for p in places(value) if p]
    if not found:
        return b"[]"
    *above, key = found[int(rng.integers(len(found)))]
    inner = value
    for step in above:
        inner = inner[step]
    way = int(rng.integers(4))
    if way == 0:
        del inner[key]
    elif way == 1:
        return json.dumps(value).encode().replace(json.dumps(inner[key]).encode(), b"[" * 20_000 + b"]" * 20_000, 1)
    else:
        inner[key] = VALUES[int(rng.integers(len(VALUES)))]
    return json.dumps(value).encode()


def changed(path, rng):
    """Change a file; return what was done."""
    data = path.read_bytes()
    ways = [flip, flip, cut, grown, lambda d, r: b""] + [json_value] * (6 if path.suffix == ".json" else 0)
    way = ways[int(rng.integers(len(ways)))]
    path.write_bytes(way(data, rng))
    return getattr(way, "__name__", "?").replace("<lambda>", "empty")


def mutate_project(project, rng):
    """Change, remove or swap files of a project; return what was done."""
    files = sorted(p for p in project.rglob("*") if p.is_file())
    # data more often than the many sources
    chosen = [p for p in files if p.suffix not in (".cpp", ".hpp", ".h", ".cu", ".txt", ".py")] if rng.random() < 0.8 else files
    path = chosen[int(rng.integers(len(chosen)))]
    name = path.relative_to(project)
    draw = rng.random()
    if draw < 0.1:
        path.unlink()
        return f"{name} removed"
    if draw < 0.2:
        other = files[int(rng.integers(len(files)))]
        path.write_bytes(other.read_bytes())
        return f"{name} is {other.relative_to(project)}"
    done = f"{name} {changed(path, rng)}"
    if rng.random() < 0.3 and path.name != "snnc.json":
        from snnc.backends.folders.manifest import write_manifest

        write_manifest(project)
        return f"{done} relisted"
    return done


def mutate_cache(rng):
    """Change a file of the cache; return what was done."""
    from snnc.compiler.files.cache import cache_dir

    cache = cache_dir()
    found = [p for kind in ("cpu-*", "project-*", "cuda-*", "codelets/*", "kernels") for f in cache.glob(kind) for p in f.rglob("*")]
    found = sorted(p for p in found if p.is_file() and not p.is_symlink())
    path = found[int(rng.integers(len(found)))]
    return f"cache {path.relative_to(cache)} {changed(path, rng)}"


def case(originals, target, rng, folder):
    """Run one case; return what was done and what is wrong with how it ended (None: nothing)."""
    shutil.copytree(originals.folder / target, folder / "p")
    shutil.copy(originals.folder / "x.npz", folder / "x.npz")
    draw = rng.random()
    if draw < 0.1:
        done = mutate_cache(rng)
    elif draw < 0.25:
        done = f"x.npz {changed(folder / 'x.npz', rng)}"
    else:
        done = mutate_project(folder / "p", rng)
    own = rng.random() < 0.85 or not (folder / "p").exists()
    line = ["run", folder / "p", "--inputs", folder / "x.npz", "--outputs", folder / "y.npz"]
    if not own:
        line = [["check", folder / "p"], ["inspect", folder / "p", "-o", folder / "r.html"]][int(rng.integers(2))]
    code, said = in_child(lambda: command(line), folder / "said.txt")
    return f"{target} {line[0]}: {done}", fault(code, said, line[0], done, folder / "y.npz", originals.expected[target])


def fault(code, said, name, done, outputs, expected):
    if code not in (0, 2, 3):
        return f"ended with {code}: {said[-400:]}"
    if "Traceback" in said or "SNNC-E599" in said:
        return f"a traceback or E599: {said[-400:]}"
    if code:
        return None if "error: SNNC-E" in said else f"an error without a code: {said[-400:]}"
    if name != "run" or "relisted" in done or done.endswith("trained.safetensors removed"):  # another project, or one that was not trained
        return None
    found = numbers(outputs)
    same = found.keys() == expected.keys() and all(np.array_equal(found[n], expected[n]) for n in expected)
    return None if same else "other numbers"


def mutate(cases, seed, targets, folder, keep=None, seconds=1e9):
    """Run cases; return how they ended, and the faults."""
    originals = Originals(folder, targets)
    ended, faults, start = Counter(), [], time.monotonic()
    for number in range(cases):
        if time.monotonic() - start > seconds:
            break
        rng = np.random.default_rng([seed, number])
        target = targets[int(rng.integers(len(targets)))]
        place = folder / f"case-{number}"
        place.mkdir()
        done, wrong = case(originals, target, rng, place)
        ended["fault" if wrong else "as it should"] += 1
        if wrong:
            faults.append(f"{number} {done}: {wrong}")
            print(faults[-1], flush=True)
            if keep is not None:
                shutil.copytree(place, keep / f"case-{number}", dirs_exist_ok=True)
        shutil.rmtree(place)
    return ended, faults


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--targets", default=",".join(TARGETS))
    parser.add_argument("--keep", type=Path)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as above:
        os.environ.setdefault("SNNC_CACHE", str(Path(above) / "cache"))
        os.environ["XDG_STATE_HOME"] = str(Path(above) / "state")
        os.environ["SNNC_CUDA_ON_HOST"] = "1"
        ended, faults = mutate(chosen.cases, chosen.seed, chosen.targets.split(","), Path(above), chosen.keep, chosen.seconds)
    print(f"{sum(ended.values())} cases, {len(faults)} faults")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
