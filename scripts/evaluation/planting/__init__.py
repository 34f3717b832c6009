"""Networks with a counterexample that attacks do not find."""
