"""PopTorch options from the command line, for train.py and train_popdist.py."""

import argparse

from .description import NETWORK
from .operation import poptorch

IPUS = NETWORK.get("ipus", 1)
"""Number of IPUs whose tiles the network uses."""
STAGES = 3
"""Number of stages of the pipeline: the network forward, the loss forward and backward, the network backward."""


def parser(text):
    """Return a parser of the arguments of both scripts."""
    flags = argparse.ArgumentParser(description=text)
    flags.add_argument("--data", help="safetensors file: inputs by name as in network.json, [samples, steps, ...], and labels")
    flags.add_argument("--epochs", type=int, default=1)
    flags.add_argument("--lr", type=float, help="learning rate; default: the compiled one")
    flags.add_argument("--gradient-window", metavar="LOW", help="lower end of the gradient window, or a schedule: exponential:-100,-0.1")
    flags.add_argument("--capacity", metavar="SPIKES", help="maximum spikes of a source in a step: '10 %%', linear:64,14,updates=100")
    flags.add_argument("--drop", choices=["lowest", "random"], default="lowest", help="which spikes are sent if more fire")
    flags.add_argument("--count-dropped", action="store_true", help="print the number of dropped spikes; slower, as steps return outputs")
    flags.add_argument("--device-iterations", type=int, default=1, help="weight updates per call of the model")
    flags.add_argument("--replicas", type=int, default=1, help="copies of the model, each with its own micro-batches")
    flags.add_argument("--accumulation", type=int, default=1, help="micro-batches per weight update")
    flags.add_argument("--pipelined", action="store_true", help="the loss on a second IPU; needs --accumulation {} or more".format(STAGES))
    flags.add_argument("--sharded", action="store_true", help="with --pipelined: one IPU works at a time")
    flags.add_argument("--ipu-model", action="store_true", help="Graphcore's model of an IPU instead of hardware; without replicas")
    flags.add_argument("--cache", help="folder for compiled programs")
    flags.add_argument("--save", default="trained.safetensors", help="file for the trained parameters")
    flags.add_argument("--seed", type=int, default=0)
    return flags


def chosen_options(args, options):
    """Fill poptorch.Options, or those of popdist, from the arguments."""
    if args.pipelined and IPUS > 1:
        raise SystemExit("--pipelined puts the loss on a second IPU, but the network uses {} IPUs at once; omit it".format(IPUS))
    if args.pipelined and args.accumulation < STAGES:
        raise SystemExit(
            "--pipelined has {} stages, and PopTorch needs at least as many micro-batches per update: --accumulation {} or more".format(
                STAGES, STAGES
            )
        )
    options.deviceIterations(args.device_iterations)
    options.Training.gradientAccumulation(args.accumulation)
    if "statistics" in NETWORK:
        options.broadcastBuffers(False)  # each replica has its own running statistics; those of the first one are saved
    options.randomSeed(args.seed)
    if args.count_dropped:
        # "limits": the sources with a spike limit; "counted": how many outputs of the operation are numbers of dropped spikes.
        if not NETWORK["limits"] and not NETWORK["counted"]:
            raise SystemExit("the network was compiled to send all spikes, so none are dropped; omit --count-dropped")
        options.outputMode(poptorch.OutputMode.All)
    if IPUS > 1:
        options.setExecutionStrategy(poptorch.ShardedExecution())
    if args.pipelined:
        strategy = poptorch.ShardedExecution if args.sharded else poptorch.PipelinedExecution
        options.setExecutionStrategy(strategy(poptorch.AutoStage.AutoIncrement))
    if args.ipu_model:
        options.useIpuModel(True)
    if args.cache:
        options.enableExecutableCaching(args.cache)
    return options
