"""The emulator of the Poplar API that ships with snnc."""
