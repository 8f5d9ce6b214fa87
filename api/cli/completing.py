"""Values offered by shell completion."""

from __future__ import annotations


def targets(incomplete: str) -> list[str]:
    """Return the targets whose names begin with the typed text."""
    from snnc.backends.registry import named
    from snnc.compiler.machines import target_names

    return [name for name in (*(backend.name for backend in named()), *target_names()) if name.startswith(incomplete)]
