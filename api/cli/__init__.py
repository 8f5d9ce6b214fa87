"""The command line: the program ``snnc``, its commands, their shared options, and their output."""
