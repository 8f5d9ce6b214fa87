"""The Poplar backend: it emits, builds and runs Poplar programs."""
