"""Run folders of instances, resume interrupted runs, compare tools."""
