"""Folders that snnc writes: recognised, locked, replaced whole."""
