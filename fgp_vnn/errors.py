"""What a user can get wrong, said in one line."""


def one_line(error: BaseException | str) -> str:
    """What an error of other people's code says, in as much as fits a line; else its name."""
    return " ".join(str(error).split())[:300] or type(error).__name__


class InputError(ValueError):
    """A file, an argument or a property that cannot be used; the message says what to do."""


class UnsupportedError(InputError):
    """A well-formed network or property that lies outside of what the verifier can decide."""
