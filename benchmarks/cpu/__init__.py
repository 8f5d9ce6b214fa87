"""Training steps on a CPU compared with other frameworks: ``snnc bench --suite cpu``."""
