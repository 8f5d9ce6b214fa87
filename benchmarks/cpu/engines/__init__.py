"""One engine per file ``with_*``: a model, an optimiser and a training step, in the fastest public variant of each framework.

Each of these files defines ``VERSIONS`` (packages whose versions are in the rows), ``ENGINE`` (its class, see
:mod:`snnc.benchmarks.cpu.engine`) and ``load``, which triggers the framework's lazy imports: memory is counted from there on. It imports
its framework at the top and is imported only in the worker's process, which reports a missing framework.
"""
