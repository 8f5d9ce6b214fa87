"""The compiler: Graph -> StepProgram -> Plan; independent of file formats and vendors."""
