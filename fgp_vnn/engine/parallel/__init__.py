"""Search of one instance by several processes."""
