"""Neuron models as data: states, parameters, input ports and an ordered list of elementwise equations.

Equations read a state's value of the previous step until the state is assigned, and then its new value.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from snnc.compiler.errors import NeuronDefinitionError
from snnc.compiler.neurons.expression import FUNCTIONS, Assignment, parse_assignments, symbols


@dataclass(frozen=True)
class NeuronModel:
    """Model of one kind of neuron.

    Parameters
    ----------
    name
        Name in reports ("LIF"); names need not be unique, because models are compared by value.
    inputs
        Input ports; the currents at a port are summed. The first port is the default.
    states
        Default initial value by state.
    parameters
        Default value by parameter; a population may override it with a scalar or one value per neuron.
    equations
        Equations of one time step, in order.
    outputs
        Output ports, each a state or an assigned name; the first port is the default.
    """

    name: str
    inputs: tuple[str, ...]
    states: Mapping[str, float]
    parameters: Mapping[str, float]
    equations: tuple[Assignment, ...]
    outputs: tuple[str, ...]

    def __post_init__(self) -> None:
        _check(self)

    @property
    def text(self) -> str:
        """The equations, one per line."""
        return "\n".join(map(str, self.equations))


def neuron(
    name: str,
    *,
    equations: str,
    inputs: str | Iterable[str] = "i",
    states: Mapping[str, float] | None = None,
    params: Mapping[str, float] | None = None,
    output: str | Iterable[str] = "s",
) -> NeuronModel:
    """Return a model from the text of its equations.

    Raises
    ------
    EquationError
        The text is not in the equation language.
    NeuronDefinitionError
        A name is undefined, repeated or reserved, or an input or a parameter is assigned.

    Examples
    --------
    >>> lif = neuron("LIF", states={"v": 0}, params={"beta": 0.9}, equations='''
    ...     v = beta*v + i
    ...     s = spike(v - 1)
    ... ''')
    >>> lif.outputs
    ('s',)
    """
    return NeuronModel(
        name,
        tuple([inputs] if isinstance(inputs, str) else inputs),
        {k: float(v) for k, v in (states or {}).items()},
        {k: float(v) for k, v in (params or {}).items()},
        parse_assignments(equations),
        tuple([output] if isinstance(output, str) else output),
    )


def _check(model: NeuronModel) -> None:
    declared = [*model.inputs, *model.states, *model.parameters]
    where = f"neuron '{model.name}'"
    repeated = sorted({n for n in declared if declared.count(n) > 1})
    if repeated:
        raise NeuronDefinitionError(f"{where}: {', '.join(repeated)} is declared twice; ports, states and parameters need distinct names.")
    for name in [*declared, *(a.target for a in model.equations)]:
        if not name.isidentifier() or "__" in name or name in FUNCTIONS:
            raise NeuronDefinitionError(f"{where}: {name!r} cannot be a name (it is a function, not an identifier, or contains '__').")
    defined = set(declared)
    for assignment in model.equations:
        unknown = sorted(set(symbols(assignment.value)) - defined)
        if unknown:
            raise NeuronDefinitionError(
                f"{where}: '{assignment}' reads {', '.join(unknown)}, which is not an input, a state, a parameter or an earlier assignment."
            )
        if assignment.target in model.inputs or assignment.target in model.parameters:
            raise NeuronDefinitionError(f"{where}: '{assignment}' assigns an input or parameter; use a new name.")
        defined.add(assignment.target)
    if not model.outputs:
        raise NeuronDefinitionError(f"{where} has no output; set 'output'.")
    missing = [o for o in model.outputs if o not in defined or o in model.inputs or o in model.parameters]
    if missing:
        raise NeuronDefinitionError(f"{where}: the output {', '.join(missing)} is neither a state nor assigned.")
