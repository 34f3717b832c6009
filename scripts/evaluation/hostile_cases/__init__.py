"""Cases made to break a verifier, and an oracle that tells when its answer is wrong."""
