"""User actions, one function each: load, lower, plan, compile, estimate, convert."""
