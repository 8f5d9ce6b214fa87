"""Errors of the command line, of data files and of output folders."""

from __future__ import annotations

from snnc.compiler.errors import SnncError


class CommandLineError(SnncError):
    """An option, argument or command does not exist or lacks its value."""

    code = "SNNC-E520"


class DataFileError(SnncError):
    """A data file is missing, unreadable or not an npz archive."""

    code = "SNNC-E521"


class PickledArrayError(SnncError):
    """A data file contains pickled Python objects, which snnc never loads."""

    code = "SNNC-E522"


class ArraySizeError(SnncError):
    """An array in a data file declares a size that differs from its data."""

    code = "SNNC-E441"


class UnsafeProjectError(SnncError):
    """Another user can change a project whose program would be executed."""

    code = "SNNC-E443"


class ChangedSourcesError(SnncError):
    """The sources of a project differ from those that snnc emits for its model."""

    code = "SNNC-E444"


class UntrustedProjectError(SnncError):
    """Somebody else compiled the project whose program would be executed."""

    code = "SNNC-E445"


class MissingArrayError(SnncError):
    """A data file lacks an array that the model or the command needs."""

    code = "SNNC-E523"


class OutputFileError(SnncError):
    """An output file cannot be written."""

    code = "SNNC-E525"


class ProjectFolderError(SnncError):
    """A folder is not an snnc project, or the project is damaged."""

    code = "SNNC-E526"


class DamagedProjectError(ProjectFolderError):
    """A file of a project has changed since the compilation."""

    code = "SNNC-E442"


class NewerProjectError(ProjectFolderError):
    """A newer version of snnc wrote the project in a format that this version cannot read."""

    code = "SNNC-E670"


class TrainedWeightsError(SnncError):
    """The trained weights of a project are damaged, not finite, or belong to a different network."""

    code = "SNNC-E424"


class SameFileError(SnncError):
    """The output file is also an input of the command."""

    code = "SNNC-E418"


class ModelFormatError(SnncError):
    """snnc cannot read this kind of model."""

    code = "SNNC-E527"


class OptionValueError(SnncError):
    """An option's value is outside its range."""

    code = "SNNC-E528"


class OptionTargetError(OptionValueError):
    """The target does not accept an option."""

    code = "SNNC-E552"


class OptionNeedsLossError(OptionValueError):
    """An option that only affects training is given without a loss."""

    code = "SNNC-E553"


class OptionConflictError(OptionValueError):
    """One option makes another one ineffective."""

    code = "SNNC-E554"


class NoTimeStepError(OptionValueError):
    """A time step in seconds is given for a model in discrete time."""

    code = "SNNC-E555"


class OptionKindError(OptionValueError):
    """An option has the wrong type: a function as a loss, a class instead of an object, a number as a target."""

    code = "SNNC-E572"


class UnknownLearnableError(OptionValueError):
    """A neuron parameter named as learnable does not belong to any population."""

    code = "SNNC-E573"


class UnknownOptimizerError(SnncError):
    """The text does not name an optimiser, or has invalid settings."""

    code = "SNNC-E529"


class MemoryShortError(SnncError):
    """The machine has too little memory for the operation."""

    code = "SNNC-E531"


class ConversionFormatError(SnncError):
    """snnc cannot write the file format of this suffix."""

    code = "SNNC-E540"


class EstimateError(SnncError):
    """The target does not support the requested estimate, or an option requires the emitted program."""

    code = "SNNC-E543"


class ExploreError(SnncError):
    """A list of machines, batch sizes or activities to explore is invalid, or the format of the chart is unknown."""

    code = "SNNC-E544"


class BenchError(SnncError):
    """The benchmark suite is unknown, or contains no network or engine of this name."""

    code = "SNNC-E545"


class CleanFolderError(SnncError):
    """A path to search for leftovers is not a folder."""

    code = "SNNC-E574"


class NoTilesError(SnncError):
    """A report or comparison requires tiles, but the target has none."""

    code = "SNNC-E575"


class InternalError(SnncError):
    """A fault in snnc itself."""

    code = "SNNC-E599"


class FilledBufferError(SnncError):
    """Past values are given for a buffer that always starts with zeros."""

    code = "SNNC-E532"


class UnknownBenchmarkError(SnncError):
    """No benchmark, or benchmark suite, has this name."""

    code = "SNNC-E550"


class RecordingError(SnncError):
    """Recorded spikes are too many to store, cannot be stored, or are damaged."""

    code = "SNNC-E320"


class DataFormatError(SnncError):
    """A file of a data set is damaged, cut short, or has a different format."""

    code = "SNNC-E580"


class ChecksumError(SnncError):
    """A file differs from the official file of its name, or no official checksum is known for it."""

    code = "SNNC-E581"


class DataOptionError(SnncError):
    """A setting of a data set is out of range: its order, a split, binning, an encoder, an augmentation, or ``--data``."""

    code = "SNNC-E582"


class SampleError(SnncError):
    """A sample of a data set does not fit the next stage: events are not binned, lengths differ, or a class index is missing."""

    code = "SNNC-E583"


class NoKernelsError(SnncError):
    """Kernels are to be timed on a target that has none."""

    code = "SNNC-E650"
