"""From one recovered time step to populations, states, equations and readouts."""
