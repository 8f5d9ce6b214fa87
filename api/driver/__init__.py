"""One function for each action of a user: load, lower, plan, compile, estimate, convert."""
