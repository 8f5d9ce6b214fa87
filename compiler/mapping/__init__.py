"""StepProgram x Target -> Plan: placement, schedule, memory and predicted cycles."""
