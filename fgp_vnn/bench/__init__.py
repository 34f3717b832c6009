"""Folders of instances: run them, resume them, compare tools, look at the result."""
