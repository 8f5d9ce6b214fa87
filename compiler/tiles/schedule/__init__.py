"""The schedule of the populations, and the number of events in each superstep."""
