"""Relays: tiles that collect a source's spikes and show them to the tiles that read them."""
