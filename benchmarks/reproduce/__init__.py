"""Reproduction of the two papers: figures, predicted and measured rows, verdicts on the claims, and the page."""
