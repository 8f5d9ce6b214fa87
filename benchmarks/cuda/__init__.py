"""Training steps on a GPU: ``snnc bench --suite cuda`` and ``--suite paper``."""
