"""What a user can get wrong, said in one line."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

MOST = 1000  # characters of a message: foreign text may have any length

# What torch, its devices, onnxruntime and C++ say of an allocation that failed.
_NO_MEMORY = re.compile(
    r"out of memory|not enough memory|allocate memory|failed to allocate|bad.?alloc", re.IGNORECASE
)
_LINE_ENDS = re.compile(r"[\t\n\r]+")


def one_line(error: BaseException | str) -> str:
    """What an error of other people's code says, in as much as fits a line; else its name."""
    return plain(" ".join(str(error).split())[:300]) or type(error).__name__


def plain(text: str, most: int = MOST) -> str:
    """A line that a terminal shows as it is: escapes for what is not printable, the middle left out
    of what is too long."""
    text = _LINE_ENDS.sub(" ", _cut(text, most))
    if text.isprintable():
        return text
    shown = (c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return _cut("".join(shown), most)


def _cut(text: str, most: int) -> str:
    kept = (most - 5) // 2
    return text if len(text) <= most else f"{text[:kept]} ... {text[-kept:]}"


class InputError(ValueError):
    """A file, an argument or a property that cannot be used; the message says what to do.

    Messages quote what files say: here, and nowhere else, they are made fit to be shown.
    """

    def __init__(self, message: object = "") -> None:
        super().__init__(plain(str(message)))


class UnsupportedError(InputError):
    """A well-formed network or property that lies outside of what the verifier can decide."""


class OutOfMemoryError(InputError):
    """An allocation that failed."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(
            f"out of memory: an allocation failed ({one_line(error)}); "
            "give --memory fewer gigabytes, so that less is taken at once"
        )


class OutOfTimeError(InputError):
    """A deadline that has passed where nothing is known yet, such as while a network is read."""


def ran_out_of_memory(error: BaseException) -> bool:
    """Whether an error, of whatever library, is an allocation that failed."""
    return isinstance(error, MemoryError) or _NO_MEMORY.search(str(error)) is not None


@contextmanager
def memory_errors() -> Iterator[None]:
    """Turn an allocation that fails, in whatever library, into an OutOfMemoryError."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        if not ran_out_of_memory(error):
            raise
        raise OutOfMemoryError(error) from None
