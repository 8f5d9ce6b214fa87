"""When each population runs, and how many events each superstep brings."""
