"""The emulator of the Poplar API that ships with snnc.

`build` builds its library and programs against it, `popc` compiles codelets.
"""
