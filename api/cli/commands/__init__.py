"""The subcommands, one a module; imports of what they run stand inside, so that ``snnc --help`` starts quickly."""
