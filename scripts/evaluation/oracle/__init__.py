"""An exact verdict by mixed-integer programming, sharing nothing with the verifier it checks."""
