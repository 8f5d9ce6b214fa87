"""The emulator of the Poplar API that ships with snnc.

`build` makes the library and programs against it, `popc` compiles codelets.
"""
