"""A cached kernel equals the one that would be derived, and a damaged cache is ignored."""

import json
import os

import pytest

from snnc.compiler.files.cache import read_checked, write_checked
from snnc.compiler.neurons import derived_kernels
from snnc.compiler.neurons.adjoint import derive_kernel
from snnc.compiler.neurons.derived_kernels import cached_kernel
from snnc.compiler.neurons.kernel import Kernel
from snnc.compiler.neurons.library import ALIF, LIF, SLSTM
from snnc.compiler.neurons.plain_data import decoded_fields, encoded_fields
from snnc.compiler.neurons.surrogates.library import atan, fast_sigmoid, straight_through


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("SNNC_CACHE", str(tmp_path))
    return tmp_path / "kernels"


def asked(model=None, surrogate=None, learnable=(), ports=("o0",), *, derived):
    """The kernel of a neuron; each derivation is noted."""
    model, surrogate = model or LIF(0.9), surrogate or atan()

    def derive():
        derived.append(model.name)
        return derive_kernel(model, surrogate, learnable)

    return cached_kernel(model, surrogate, learnable, ports, derive)


@pytest.mark.parametrize("model", [LIF(0.9), ALIF(0.9, 0.8), SLSTM()], ids=lambda model: model.name)
def test_text_and_back_is_the_same_kernel(model):
    kernel = derive_kernel(model, fast_sigmoid(), tuple(model.parameters))
    assert decoded_fields(Kernel, json.loads(json.dumps(encoded_fields(kernel))), "the kernel") == kernel


def test_the_second_time_nothing_is_derived(cache):
    derived = []
    first, second = (asked(derived=derived) for _ in range(2))
    assert first == second == derive_kernel(LIF(0.9), atan())
    assert len(derived) == 1
    assert len(list(cache.iterdir())) == 1


def test_other_neurons_surrogates_parameters_ports_and_code_have_kernels_of_their_own(cache, monkeypatch):
    derived = []
    asked(derived=derived)
    beta = next(iter(LIF(0.9).parameters))
    others = ({"model": ALIF(0.9, 0.8)}, {"surrogate": straight_through()}, {"learnable": (beta,)}, {"ports": ("o0", "o1")})
    for number, other in enumerate(others, 2):
        asked(**other, derived=derived)
        assert len(derived) == number
    monkeypatch.setattr(derived_kernels, "_code_hash", lambda: "another version")
    asked(derived=derived)
    assert len(derived) == len(others) + 2


@pytest.mark.parametrize(
    "damaged",
    [b"", b"{", b"[]", b"{}", b"\xff\xfe", b"[" * 100_000, b'{"forward": "import os"}', b" " * (derived_kernels.LARGEST + 1)],
    ids=lambda text: f"{len(text)} bytes",
)
def test_a_damaged_file_is_written_anew(cache, damaged):
    derived = []
    kernel = asked(derived=derived)
    (file,) = cache.iterdir()
    file.write_bytes(damaged)
    assert asked(derived=derived) == kernel
    assert len(derived) == 2
    assert asked(derived=derived) == kernel
    assert len(derived) == 2


def test_a_number_that_has_changed_is_not_taken(cache):
    derived = []
    kernel = asked(derived=derived)
    (file,) = cache.iterdir()
    text = file.read_bytes()
    assert b"a0 * s0_prev" in text
    file.write_bytes(text.replace(b"a0 * s0_prev", b"a1 * s0_prev"))
    assert asked(derived=derived) == kernel
    assert len(derived) == 2


def test_code_that_is_no_equation_is_not_taken(cache):
    derived = []
    kernel = asked(derived=derived)
    (file,) = cache.iterdir()
    data = json.loads(read_checked(file, derived_kernels.LARGEST))
    write_checked(file, json.dumps(data | {"backward": "d_i0 = __import__('os').getcwd()"}).encode())
    assert asked(derived=derived) == kernel
    assert len(derived) == 2


def test_without_a_cache_kernels_are_derived(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SNNC_CACHE", str(tmp_path / "file" / "cache"))
    derived = []
    assert asked(derived=derived) == asked(derived=derived)
    assert len(derived) == 2
    assert os.listdir(tmp_path) == ["file"]
