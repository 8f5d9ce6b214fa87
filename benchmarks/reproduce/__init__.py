"""Reproduction of the two papers: figures, predicted and measured rows, answers to the claims, and the page."""
