"""Activations: what stands between two affine maps of a network."""
