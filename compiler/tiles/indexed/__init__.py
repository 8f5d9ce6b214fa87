"""Connections that are not dense, on tiles: tables for the blocks of a plan, their owners, cycles and traffic."""
