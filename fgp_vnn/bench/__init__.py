"""Run folders of instances, resume such runs, compare tools."""
