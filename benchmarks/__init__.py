"""The networks on which the mapping is measured, and the published timings, for ``snnc bench``."""
