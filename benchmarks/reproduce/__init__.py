"""Reproduction of the two papers: the figures, what each row predicts or measures, the answers to the claims, and the page."""
