"""Errors of the command line, of data files and of output folders."""

from __future__ import annotations

from snnc.compiler.errors import SnncError


class CommandLineError(SnncError, code="SNNC-E520"):
    """An option, argument or command does not exist or lacks its value."""


class DataFileError(SnncError, code="SNNC-E521"):
    """A data file is missing, unreadable or not an npz archive."""


class PickledArrayError(SnncError, code="SNNC-E522"):
    """A data file contains pickled Python objects, which snnc never loads."""


class ArraySizeError(SnncError, code="SNNC-E441"):
    """An array in a data file declares a size that differs from its data."""


class UnsafeProjectError(SnncError, code="SNNC-E443"):
    """Another user can change a project whose program would be executed."""


class ChangedSourcesError(SnncError, code="SNNC-E444"):
    """The sources of a project differ from those that snnc emits for its model."""


class UntrustedProjectError(SnncError, code="SNNC-E445"):
    """Somebody else compiled the project whose program would be executed."""


class MissingArrayError(SnncError, code="SNNC-E523"):
    """A data file lacks an array that the model or the command needs."""


class OutputFileError(SnncError, code="SNNC-E525"):
    """An output file cannot be written."""


class ProjectFolderError(SnncError, code="SNNC-E526"):
    """A folder is not an snnc project, or the project is damaged."""


class DamagedProjectError(ProjectFolderError, code="SNNC-E442"):
    """A file of a project has changed since the compilation."""


class NewerProjectError(ProjectFolderError, code="SNNC-E670"):
    """A newer version of snnc wrote the project in a format that this version cannot read."""


class TrainedWeightsError(SnncError, code="SNNC-E424"):
    """The trained weights of a project are damaged, not finite, or belong to a different network."""


class SameFileError(SnncError, code="SNNC-E418"):
    """The output file is also an input of the command."""


class ModelFormatError(SnncError, code="SNNC-E527"):
    """snnc cannot read this kind of model."""


class OptionValueError(SnncError, code="SNNC-E528"):
    """An option's value is outside its range."""


class OptionTargetError(OptionValueError, code="SNNC-E552"):
    """The target does not accept an option."""


class OptionNeedsLossError(OptionValueError, code="SNNC-E553"):
    """An option that only affects training is given without a loss."""


class OptionConflictError(OptionValueError, code="SNNC-E554"):
    """One option makes another one ineffective."""


class NoTimeStepError(OptionValueError, code="SNNC-E555"):
    """A time step in seconds is given for a model in discrete time."""


class OptionKindError(OptionValueError, code="SNNC-E572"):
    """An option has the wrong type: a function as a loss, a class instead of an object, a number as a target."""


class UnknownLearnableError(OptionValueError, code="SNNC-E573"):
    """A neuron parameter named as learnable does not belong to any population."""


class UnknownOptimizerError(SnncError, code="SNNC-E529"):
    """The name of an optimiser is unknown, or its settings are invalid."""


class MemoryShortError(SnncError, code="SNNC-E531"):
    """The machine has too little memory for the operation."""


class ConversionFormatError(SnncError, code="SNNC-E540"):
    """snnc cannot write the file format of this suffix."""


class EstimateError(SnncError, code="SNNC-E543"):
    """The target does not support the requested estimate, or an option requires the emitted program."""


class ExploreError(SnncError, code="SNNC-E544"):
    """A list of machines, batch sizes or activities to explore is invalid, or the format of the chart is unknown."""


class BenchError(SnncError, code="SNNC-E545"):
    """The benchmark suite is unknown, or contains no network or engine of this name."""


class CleanFolderError(SnncError, code="SNNC-E574"):
    """A path to search for leftovers is not a folder."""


class NoTilesError(SnncError, code="SNNC-E575"):
    """A report or comparison requires tiles, but the target has none."""


class InternalError(SnncError, code="SNNC-E599"):
    """A fault in snnc itself."""


class FilledBufferError(SnncError, code="SNNC-E532"):
    """An array for past values that are always 0 contains other values."""


class UnknownBenchmarkError(SnncError, code="SNNC-E550"):
    """No benchmark, or benchmark suite, has this name."""


class RecordingError(SnncError, code="SNNC-E320"):
    """Recorded spikes are too many to store, cannot be stored, or are damaged."""


class DataFormatError(SnncError, code="SNNC-E580"):
    """A file of a data set is damaged, cut short, or has a different format."""


class ChecksumError(SnncError, code="SNNC-E581"):
    """A file differs from the official file of its name, or no official checksum is known for it."""


class DataOptionError(SnncError, code="SNNC-E582"):
    """A setting of a data set is out of range: its order, a split, binning, an encoder, an augmentation, or ``--data``."""


class SampleError(SnncError, code="SNNC-E583"):
    """A sample of a data set does not fit the next stage: events are not binned, lengths differ, or a class index is missing."""


class InitialisationError(SnncError, code="SNNC-E123"):
    """An initialisation does not fit the network or its data, or has an invalid setting."""


class NoKernelsError(SnncError, code="SNNC-E650"):
    """Kernels are to be timed on a target that has none."""
