"""Figures of the paper on snnTorch for IPUs (arXiv 2211.10725)."""
