"""Copies of dense weights for products: transposed for the backward pass, or in 16 bits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from snnc.compiler.ir.plan import Precision

Kind = Literal["back", "rows16", "forward16", "backward16"]

HALVES: Final[dict[Precision, str | None]] = {"float32": None, "tf32": None, "bfloat16": "BFloat16", "float16": "Float16"}
"""C++ names of the 16-bit types, by precision."""
LANES: Final = 32
"""Number of lanes (threads) of a warp (``device.hpp``)."""
_DEPTH: Final = 16
"""Depth of a tensor core product (``tensor_cores.hpp``). Copies in fragments are padded to multiples of this depth and of `LANES` rows."""


@dataclass(frozen=True)
class WeightCopy:
    """A copy of a dense weight on the device, updated when the weight changes; the weight itself is stored as [inputs][outputs]."""

    weight: str
    kind: Kind
    """``back``: float32, [outputs][inputs]; ``rows16``: [inputs][outputs]; ``forward16`` and ``backward16``: in tensor core fragments."""
    inputs: int
    outputs: int

    @property
    def name(self) -> str:
        """Name of the member of ``Net``."""
        return f"{self.weight}_{self.kind}"

    @property
    def words(self) -> int:
        """Number of 32-bit words on the device."""
        if self.kind == "back":
            return self.inputs * self.outputs
        if self.kind == "rows16":
            return -(-self.inputs * self.outputs // 2)
        rows, depth = (self.outputs, self.inputs) if self.kind == "forward16" else (self.inputs, self.outputs)
        return -(-rows // LANES) * LANES * -(-depth // _DEPTH) * _DEPTH // 2

    @property
    def field(self) -> str:
        """C++ declaration of the member of ``Net``."""
        kind = {"back": "float", "rows16": "Short<Half>"}.get(self.kind, "std::uint32_t")
        return f"{kind} *{self.name};"

    @property
    def binding(self) -> str:
        """Statement that passes the address of the copy to kernels."""
        data = f"{self.array}.data()"
        return f"net.{self.name} = {f'reinterpret_cast<Short<Half> *>({data})' if self.kind == 'rows16' else data};"

    @property
    def statement(self) -> str:
        """Statement that updates the copy."""
        weight, to, i, o = f"net.{self.weight}", f"net.{self.name}", self.inputs, self.outputs
        return {
            "back": f"turn_weights({weight}, {i}, {o}, {to});",
            "rows16": f"round_numbers<Half>({weight}, {i * o}, {to});",
            "forward16": f"round_fragments<Half>({weight}, {o}, {i}, 1, {o}, {to});",
            "backward16": f"round_fragments<Half>({weight}, {i}, {o}, {o}, 1, {to});",
        }[self.kind]

    @property
    def array(self) -> str:
        """The session's array that stores the copy."""
        return f"{self.weight}.{'copy' if self.kind == 'back' else self.kind}"
