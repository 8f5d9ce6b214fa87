"""Protocols of the engines that backends implement; inputs, weights and predictions of sessions."""
