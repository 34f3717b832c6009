"""What a user can get wrong, said in one line."""


class InputError(ValueError):
    """A file, an argument or a property that cannot be used; the message says what to do."""


class UnsupportedError(InputError):
    """A well-formed network or property that lies outside of what the verifier can decide."""
