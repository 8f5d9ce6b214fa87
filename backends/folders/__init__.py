"""Folders that snnc writes: manifests, locks, and atomic replacement."""
