"""Indexed connections on tiles: tables for the blocks of a plan, and the owners of shared weights."""
