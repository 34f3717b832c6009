"""One instance searched by several processes."""
