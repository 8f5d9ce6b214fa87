"""Folders that snnc writes: how it recognises, locks and replaces them."""
