"""The networks that the mapping is measured on, and the published timings: what ``snnc bench`` runs."""
