"""Relays: tiles that collect the spikes or values of a source and send them in windows to the tiles that read them."""
