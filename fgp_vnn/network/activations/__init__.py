"""Activation functions, applied between the affine maps of a network."""
