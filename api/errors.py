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
    """An array of a data file declares a different size than the file contains."""

    code = "SNNC-E441"


class UnsafeProjectError(SnncError):
    """Another user can change a project whose program would be executed."""

    code = "SNNC-E443"


class ChangedSourcesError(SnncError):
    """The sources of a project are not those that snnc emits for its model."""

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
    """A folder is not an snnc project, or a damaged one."""

    code = "SNNC-E526"


class DamagedProjectError(ProjectFolderError):
    """A file of a project changed after the compilation: damaged, or replaced."""

    code = "SNNC-E442"


class NewerProjectError(ProjectFolderError):
    """A newer version of snnc wrote the project, in a format that this version does not read."""

    code = "SNNC-E670"


class TrainedWeightsError(SnncError):
    """The trained weights of a project are damaged, not finite or from another network."""

    code = "SNNC-E424"


class SameFileError(SnncError):
    """The file to write is one that the command reads."""

    code = "SNNC-E418"


class ModelFormatError(SnncError):
    """snnc does not read this kind of model."""

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
    """The text names no optimiser that snnc knows."""

    code = "SNNC-E529"


class MemoryShortError(SnncError):
    """The machine has less memory than the work needs."""

    code = "SNNC-E531"


class ConversionFormatError(SnncError):
    """The suffix of the output file is not a format that snnc writes."""

    code = "SNNC-E540"


class EstimateError(SnncError):
    """The requested estimate does not exist for the target, or an option needs the emitted program."""

    code = "SNNC-E543"


class ExploreError(SnncError):
    """A list of machines, batch sizes or activities to explore cannot be read, or the format of the chart is unknown."""

    code = "SNNC-E544"


class BenchError(SnncError):
    """The suite of measurements is unknown, or none of its networks or engines has such a name."""

    code = "SNNC-E545"


class CleanFolderError(SnncError):
    """A place to search for leftovers is not a folder."""

    code = "SNNC-E574"


class NoTilesError(SnncError):
    """A report should draw or compare tiles, but the target has none."""

    code = "SNNC-E575"


class InternalError(SnncError):
    """A fault in snnc itself."""

    code = "SNNC-E599"


class FilledBufferError(SnncError):
    """An array of past values was given for a buffer that starts with zeros."""

    code = "SNNC-E532"


class UnknownBenchmarkError(SnncError):
    """No benchmark, or suite of benchmarks, has that name."""

    code = "SNNC-E550"


class RecordingError(SnncError):
    """Recorded spikes are too many to keep, cannot be stored, or are damaged."""

    code = "SNNC-E320"


class DataFormatError(SnncError):
    """A file of a data set is damaged, cut short or of another format."""

    code = "SNNC-E580"


class ChecksumError(SnncError):
    """A file differs from the official one of its name, or no official checksum is known for it."""

    code = "SNNC-E581"


class DataOptionError(SnncError):
    """A setting of a data set is out of range: of its order, a split, binning, an encoder, an augmentation, or of ``--data``."""

    code = "SNNC-E582"


class SampleError(SnncError):
    """A sample of a data set does not fit the next step: events are not binned, lengths differ, or the sample has no class index."""

    code = "SNNC-E583"
