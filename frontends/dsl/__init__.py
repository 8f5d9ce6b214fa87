"""Python DSL for networks."""
