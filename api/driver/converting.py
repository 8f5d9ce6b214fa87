"""Convert ReLU networks to spiking networks: ``snnc.ann2snn``, and the option ``--ann2snn`` of the commands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from snnc.compiler.files.temporary import temporary_folder
from snnc.compiler.ir.graph import Graph
from snnc.data.arrays import read_arrays
from snnc.driver.loading import as_graph, check_unread_options, is_project
from snnc.errors import OptionValueError
from snnc.frontends.ann2snn.conversion import PERCENTILE, STEPS, Conversion, convert_file
from snnc.frontends.ann2snn.errors import AlreadySpikingError, CalibrationMissingError

Calibration: TypeAlias = Mapping[str, npt.ArrayLike] | npt.ArrayLike | str | Path
"""Sample data: an array, arrays by name, or the path of an npz archive."""


def ann2snn(
    model: Any, calibration: Calibration, *, labels: npt.ArrayLike | None = None, steps: int = STEPS, percentile: float = PERCENTILE
) -> Conversion:
    """Convert a feed-forward ReLU network to integrate-and-fire neurons and measure the loss of accuracy.

    Each ReLU becomes a neuron that resets by subtraction and starts at half its threshold. Thresholds are balanced on one half of the
    sample data, and both networks are compared on the other half. The network receives the same input at every step. The mean of its
    output over the steps estimates the ReLU network's output.

    Parameters
    ----------
    model
        An ``.onnx`` file, or a ``torch.nn.Module``, which is exported in evaluation mode.
    calibration
        Samples that resemble the training data: an array [samples, *shape], a mapping of such arrays by input name, or an npz archive of
        them. They may include class indices as ``y``.
    labels
        Class indices [samples], if the sample data do not contain them. Without class indices, accuracy is not measured.
    steps
        Number of time steps of the spiking network: more steps are slower and more accurate.
    percentile
        Percentile of a layer's positive activations that maps to a firing rate of 1; 100 is the maximum.

    Raises
    ------
    Ann2SnnError
        The network cannot be converted, or the sample data do not fit it.

    Examples
    --------
    ::

        conversion = snnc.ann2snn("mlp.onnx", {"x": x, "y": y}, steps=32)
        print(conversion.report.accuracy, conversion.report.loss)
        session = snnc.compile(conversion.graph)
    """
    if isinstance(calibration, str | Path):
        calibration = read_arrays(Path(calibration))
    arrays: Mapping[str, npt.ArrayLike] = calibration if isinstance(calibration, Mapping) else {"x": calibration}
    if isinstance(model, str | Path):
        return _converted(Path(model), arrays, labels=labels, steps=steps, percentile=percentile)
    from snnc.frontends.torch import export_evaluated

    with temporary_folder() as folder:
        file = export_evaluated(model, {name: np.asarray(a)[:1] for name, a in arrays.items()}, Path(folder))
        return convert_file(file, arrays, labels=labels, steps=steps, percentile=percentile)


@dataclass(frozen=True)
class ConversionRequest:
    """Conversion options of a command; None selects the default.

    Raise OptionValueError if an option is given, but no conversion is `requested`.
    """

    requested: bool
    calibration: Path | None = None
    percentile: float | None = None
    steps: int | None = None

    def __post_init__(self) -> None:
        if self.requested:
            return
        for option in ("calibration", "percentile", "steps"):
            if getattr(self, option) is not None:
                raise OptionValueError(f"--{option} applies to the conversion of a ReLU network; add --ann2snn, or leave it out.")


def graph_for(
    model: Path,
    conversion: ConversionRequest,
    *,
    dt: float | None = None,
    dialect: str | None = None,
    input_kind: str | None = None,
    steps: int | None = None,
    lenient: bool = False,
    detach: str | None = None,
) -> Graph:
    """Return the graph of a command's model, converted if `conversion` requests it.

    For the other parameters see :func:`~snnc.driver.loading.as_graph`; a conversion ignores `lenient`, and reads ``conversion.steps``
    instead of `steps`.
    """
    if not conversion.requested:
        return as_graph(model, dt=dt, dialect=dialect, input_kind=input_kind, steps=steps, lenient=lenient, detach=detach)
    check_unread_options(f"the ReLU network {str(model)!r}", dt, dialect, detach)
    if conversion.calibration is None:
        raise CalibrationMissingError(
            "a conversion balances thresholds on sample data; give an npz archive with --calibration: x [samples, …], and optionally y "
            "[samples], the class indices."
        )
    settings = {name: value for name in ("steps", "percentile") if (value := getattr(conversion, name)) is not None}
    return as_graph(_converted(model, read_arrays(conversion.calibration), **settings).graph, input_kind=input_kind)


def _converted(model: Path, arrays: Mapping[str, npt.ArrayLike], **chosen: Any) -> Conversion:
    if is_project(model):
        raise AlreadySpikingError(f"{str(model)!r} is a compiled project, and so already a spiking network; leave --ann2snn out.")
    return convert_file(model, arrays, **chosen)
