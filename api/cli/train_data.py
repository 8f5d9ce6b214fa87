"""Training and validation data of ``snnc train``: npz archives, and data sets by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from snnc.data.data_set import DataSet
    from snnc.data.named import Reading
    from snnc.session import Session


@dataclass(frozen=True)
class Archived:
    """Samples and labels of an npz archive."""

    path: Path
    arrays: Mapping[str, Any]
    labels: Any

    def for_fit(self, session: Session, reading: Reading) -> tuple[Any, Any]:
        """Return samples and labels; raise DataOptionError if `reading`, which is for data sets, contains a setting."""
        from snnc.errors import DataOptionError

        if names := reading.given_names:
            raise DataOptionError(f"{names[0]} has no effect on the archive {str(self.path)!r}, whose samples have steps already.")
        return self.for_validation(session, reading)

    def for_validation(self, session: Session, reading: Reading) -> tuple[Any, Any]:
        """Return samples, by input name or as one array for a single input, and labels; `reading` is ignored."""
        from snnc.data.arrays import pick

        names = [info.label for info in session.program.inputs]
        if len(names) == 1 and names[0] not in self.arrays:
            return pick(self.arrays, "x", self.path), self.labels
        return {name: pick(self.arrays, name, self.path) for name in names}, self.labels


@dataclass(frozen=True)
class NamedDataSet:
    """A data set of a kind in :data:`snnc.data.named.KINDS`; the network determines how its samples become inputs."""

    kind: str
    data: DataSet

    def for_fit(self, session: Session, reading: Reading) -> tuple[DataSet, None]:
        """Return the data set, with samples converted to the network's inputs; the None stands for the labels, which it contains."""
        from snnc.data.named import as_inputs

        infos = session.program.inputs
        steps = session.program.steps or session.engine.steps
        return as_inputs(self.data, self.kind, reading, steps, infos[0].shape if len(infos) == 1 else None), None

    def for_validation(self, session: Session, reading: Reading) -> DataSet:
        """Return the data set, with samples converted to the network's inputs."""
        return self.for_fit(session, reading)[0]


def data_names(table: Mapping[str, Any], data: str | None, validation: object, reading: Reading) -> tuple[str, str | None, Reading]:
    """Return the names of training and validation data, and settings that convert their samples; options override a recipe's ``[data]``.

    Names are npz archives or ``KIND:PATH``. Raise DataOptionError without training data.
    """
    from snnc.errors import DataOptionError

    train, validation = data or table.get("train"), validation or table.get("validation")
    if train is None:
        raise DataOptionError("no training data; give --data, or train = … in the table [data] of the recipe.")
    settings = {name: value for name, value in table.items() if name not in ("train", "validation") and getattr(reading, name) is None}
    return str(train), None if validation is None else str(validation), replace(reading, **settings)


def open_data(name: str) -> Archived | NamedDataSet:
    """Open the data named by ``--data`` or ``--validation``; errors as for :func:`read_arrays`, :func:`pick` and the readers."""
    from snnc.data.arrays import pick, read_arrays
    from snnc.data.named import KINDS, split_name

    named = split_name(name)
    if named is not None:
        return NamedDataSet(named[0], KINDS[named[0]](named[1]))
    path = Path(name)
    arrays = read_arrays(path)
    return Archived(path, arrays, pick(arrays, "y", path))
