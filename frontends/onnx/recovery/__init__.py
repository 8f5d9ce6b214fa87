"""Find populations, states, equations and readouts in one recovered time step."""
