"""The commands to run on each model."""

import itertools
from collections.abc import Iterator
from fnmatch import fnmatchcase

from golden_nets import NETS
from hashing import CORPUS, Case
from reference_pages import reference

LOSS = ("--loss", "ce_mean_membrane")
SIZES = ("--steps", "5", "--batch", "4")
TARGETS = ("reference", "cpu", "cuda", "gc200", "poptorch")
SEVERAL_CHIPS = {
    "m2000": ("lif", "recurrent", "sparse", "convolution", "several_inputs", "groups", "wide"),
    "pod4": ("lif", "sparse_delays", "wide"),
    "pod16": ("deep", "wide"),
    "bow": ("lif", "wide"),
}
FILES = (
    "norse_lifcell_ts.onnx",
    "norse_lsnn_dyn.onnx",
    "snntorch_leaky_sub_ts.onnx",
    "snntorch_conv_bn_ts.onnx",
    "snntorch_scan_rleaky.onnx",
    "snntorch_rsynaptic_all2all_ts.onnx",
    "snntorch_topo_delay2_ts.onnx",
    "snntorch_loop_synaptic.onnx",
    "sj_plif_m_dyn.onnx",
    "sj14_sew_add_m_ts.onnx",
    "torch_script_loop_meanmem_ts.onnx",
)
NIR_FILES = (
    "hand_nir_branch_merge.nir",
    "hand_nir_delay.nir",
    "hand_nir_recurrent.nir",
    "norse_nir_lifbox.nir",
    "snntorch_nir_synaptic.nir",
)
OPTIONS = {
    "cpu": {
        "lif": ("--truncate 2", "--precision bfloat16", "--threads 2", "--memory 10M", "--optimizer sgd:0.01,0.9"),
        "recurrent": ("--surrogate fast_sigmoid:25 --lr 0.01", "--gradient-window -0.3,0.5", "--learnable beta,threshold"),
    },
    "cuda": {
        "recurrent": ("--truncate 2", "--precision bfloat16", "--precision float16", "--memory 10M", "--optimizer sgd:0.01"),
        "convolution": ("--precision float16", "--gradient-window -0.3"),
    },
    "gc200": {
        "recurrent": (
            "--capacity 2",
            "--capacity 2 --mode drop",
            "--gradient-window -0.3,0.5",
            "--recompute 2",
            "--recompute off",
            "--learnable beta",
            "--seed 7",
            "--surrogate superspike",
            "--optimizer sgd:0.01,0.9",
        ),
        "lif": ("--streaming inputs --recompute 2", "--streaming boundaries --recompute 2", "--streaming history --recompute 2"),
        "sparse": ("--parts 1", "--parts 3"),
    },
    "m2000": {"sparse": ("--parts 4",)},
    "poptorch": {"recurrent": ("--capacity 2", "--recompute 2", "--gradient-window -0.3")},
}
LOSSES = ("ce_rate", "ce_max_membrane", "mse_count", "mse_count:0.8,0.2")
PASSES = ("recurrent", "convolutions", "several_inputs", "norse_lsnn_dyn.onnx")
PASS_NAMES = ("drop-flatten", "merge-linear", "dissolve-add", "divide-averages", "materialise-relays")
FORMATS = ("html", "text", "json", "svg", "graphml", "dot", "trace")
COMMANDS = ("compile", "run", "train", "check", "verify", "convert", "inspect", "explore", "bench", "targets", "doctor", "clean", "emulate")
REFUSED = {
    "an unknown target": "compile MODEL --target nowhere -o out",
    "no folder": "compile MODEL --target gc200",
    "an unknown loss": "compile MODEL --target cpu -o out --loss luck",
    "an option without a loss": "compile MODEL --target cpu -o out --truncate 2",
    "an option of another target": "compile MODEL --target gc200 -o out --threads 2",
    "too few steps": "compile MODEL --target gc200 -o out --steps 0",
    "no steps": "compile MODEL --target gc200 -o out",
    "a network that does not fit": "compile MODEL --target gc2 --steps 200000 --batch 512 --loss ce_mean_membrane --estimate-only --json",
    "an unknown pass": "compile MODEL --dump-after nothing",
    "an unknown format": "inspect MODEL --format poem",
    "an unknown option": "compile MODEL --frobnicate",
    "no command": "frobnicate",
    "no model": "check nothing.onnx",
}


def _emit(model: str, target: str, *more: str) -> Case:
    return Case(
        " ".join((model, target, *more)),
        model,
        (("compile", "MODEL", "--target", target, "-o", "out", *SIZES, *more),),
    )


def _projects() -> Iterator[Case]:
    for model, target in itertools.product(NETS, TARGETS):
        loss = ("--loss", "ce_count") if model in ("lif_fires", "feedback") else LOSS
        yield _emit(model, target, *loss)
        if target not in ("reference", "poptorch"):
            yield _emit(model, target)
    for target, models in SEVERAL_CHIPS.items():
        for model in models:
            yield _emit(model, target, *LOSS)
    for target, chosen in OPTIONS.items():
        for model, options in chosen.items():
            for text in options:
                yield _emit(model, target, *LOSS, *text.split())
    for loss, target in itertools.product(LOSSES, ("cpu", "cuda", "gc200")):
        yield _emit("integrate_and_fire" if "membrane" in loss else "lif_fires", target, "--loss", loss)
    for model, target in itertools.product((*FILES, *NIR_FILES), ("cpu", "cuda", "gc200")):
        yield _emit(model, target, *(("--dt", "1e-4") if model in NIR_FILES else ()), *((LOSS) if target != "cuda" else ()))


def _other_commands() -> Iterator[Case]:
    for model in NETS:
        yield Case(f"{model} check", model, (("check", "MODEL", "--json"), ("check", "MODEL")))
        both = (("convert", "MODEL", "plain.onnx"), ("convert", "MODEL", "functions.onnx", "--form", "functions"))
        refused = ("convert", "MODEL", "model.nir", "--dt", "1e-4")  # but for some: resets and delays that NIR has no words for
        yield Case(f"{model} convert", model, (*both, refused))
    for model in NIR_FILES:
        written = (("convert", "MODEL", "model.nir", "--dt", "1e-4"), ("convert", "MODEL", "model.onnx", "--dt", "1e-4"))
        yield Case(f"{model} convert", model, written)
    for path in sorted((*CORPUS.glob("*.onnx"), *CORPUS.glob("*.nir"))):
        yield Case(f"{path.name} check", path.name, (("check", "MODEL", "--json"),))
    for model in PASSES:
        yield Case(f"{model} passes", model, tuple(("compile", "MODEL", "--dump-after", name) for name in PASS_NAMES))
    for model, target in itertools.product(("recurrent", "sparse", "wide"), ("gc200", "pod4", "cpu", "cuda")):
        yield Case(
            f"{model} {target} estimate", model, (("compile", "MODEL", "--target", target, "--estimate-only", "--json", *SIZES, *LOSS),)
        )
    for strategy in ("linear", "random", "greedy"):
        command = ("compile", "MODEL", "--estimate-only", "--json", "--strategy", strategy, "--activity", "0.1", *SIZES)
        yield Case(f"recurrent estimate {strategy}", "recurrent", (command,))
    explore = ("explore", "MODEL", "--targets", "gc200,m2000", "--batch", "2,4", "--steps", "5")
    yield Case(
        "recurrent explore", "recurrent", ((*explore, "--json", "points.json", "--plot", "points.svg"), (*explore, *LOSS, "--json", "-"))
    )
    for model, target in (("recurrent", "gc200"), ("sparse", "m2000"), ("recurrent", "cpu"), ("recurrent", "cuda")):
        formats = FORMATS if target not in ("cpu", "cuda") else ("html", "text", "json")
        shown = tuple(("inspect", "out", "--format", name, "-o", f"report.{name}") for name in formats)
        yield Case(f"{model} {target} inspect", model, (("compile", "MODEL", "--target", target, "-o", "out", *SIZES, *LOSS), *shown))
    for name, text in REFUSED.items():
        yield Case(f"refused: {name}", "lif", (tuple(text.split()),))
    yield Case("help", "lif", (("--help",), *((name, "--help") for name in COMMANDS)))
    yield Case("error codes", "lif", (), texts=error_codes)
    yield Case("targets", "lif", (("targets",), ("targets", "--json"), ("targets", "gc200")))


def error_codes() -> dict[str, str]:
    """Return the class and the meaning of every code."""
    return {kind.code: f"{kind.__name__}: {' '.join((kind.__doc__ or '').split())}" for kind in reference().error_classes()}


def cases() -> list[Case]:
    """Return all cases; their names differ."""
    found = [*_projects(), *_other_commands()]
    assert len({case.name for case in found}) == len(found)
    return found


def chosen(pattern: str) -> list[Case]:
    """Return the cases whose name holds `pattern` or matches it."""
    return [case for case in cases() if pattern in case.name or fnmatchcase(case.name, pattern)]
