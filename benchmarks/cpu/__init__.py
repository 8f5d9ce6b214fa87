"""Training steps on a CPU, measured beside other frameworks: what ``snnc bench --suite cpu`` runs."""
