"""The subcommands, one per module. Each imports the code it needs inside its function, so that ``snnc --help`` starts quickly."""
