"""What every emitter uses: printed expressions, generated names, weights files, templates."""
