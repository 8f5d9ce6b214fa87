"""The compiler: Graph -> StepProgram -> Plan; it knows no file format and no vendor."""
