"""The subcommands, one per module. They import the code that they run inside functions, so that ``snnc --help`` starts quickly."""
