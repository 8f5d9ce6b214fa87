"""The machines that snnc knows, a TOML file each."""
