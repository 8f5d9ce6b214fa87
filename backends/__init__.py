"""Backends: they turn a step program, or its plan, into a project, and a project into a session."""
