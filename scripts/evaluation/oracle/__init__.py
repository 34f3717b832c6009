"""Exact verdicts by mixed-integer programming, independent of the verifier under test."""
