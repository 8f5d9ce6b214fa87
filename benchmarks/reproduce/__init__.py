"""``snnc reproduce``: figures and claims of two papers on spiking networks on IPUs (arXiv 2311.04386 and 2211.10725), on one page."""
