"""Schedule of the populations, buses between them, and the number of events in each iteration."""
