"""Cases made to break a verifier, and an oracle that knows when one of them has."""
