"""Protocols of the engines that backends implement, and the inputs, weights and predictions of sessions."""
