"""Relays: tiles that collect the spikes of a source and send them, in windows, to the tiles that read them."""
