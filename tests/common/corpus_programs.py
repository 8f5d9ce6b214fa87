"""The files of the corpus as programs that emitted code runs: their stored inputs, compared with the reference."""

import test_onnx_corpus

from snnc.backends.reference.engine import ReferenceEngine
from snnc.backends.session import BackendSession

ONNX = [n for n in test_onnx_corpus.GOOD if n != "bad_snn_tanh_dyn"]
ALWAYS = (
    "norse_conv_dyn",
    "norse_lifadex_ts",
    "norse_lifrefrac_ts",
    "norse_lsnn_dyn",
    "sj14_ann2snn_converted_ts",
    "sj14_conv_avg_s_ts",
    "sj_klif_m_ts",
    "snntorch_alpha_sub_dyn",
    "snntorch_conv_poolfirst_ts",
    "snntorch_leaky_graded_learn_dyn",
    "snntorch_rsynaptic_all2all_ts",
    "torch_script_loop_ff_ts",
    "hand_nir_threshold",
    "sj_nir_cubalif",
)
"""Files that always run: neurons, operations and loops of which most others are combinations. The others run with ``--wide``."""


def compare(program, runs, opened):
    """Check the outputs of a program, opened by `opened`, for inputs and initial states."""
    with opened(program) as engine:
        session, reference = BackendSession(engine, program), BackendSession(ReferenceEngine(program), program)
        for feeds, states in runs:
            found, wanted = session.run(feeds, states), reference.run(feeds, states)
            assert found.keys() == wanted.keys()
            for name, value in wanted.items():
                test_onnx_corpus.check(found[name], value)


def onnx_runs(graph, z):
    """Return the stored inputs of a file, each with the initial states."""
    runs = []
    for prefix in ("", "alt_"):
        feeds = {k[len(prefix) + 3 :]: z[k] for k in z.files if k.startswith(prefix + "in_")}
        states = {k[5:]: z[k] for k in z.files if k.startswith("init_")} if not prefix else {}
        if feeds:
            known = {i: a for i, a in feeds.items() if i in graph.nx}
            runs.append((known, states | {i: a for i, a in feeds.items() if i in graph.state_inputs}))
    return runs
