"""Errors that a user can cause, each reported in one line."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

MOST = 1000  # longest message, in characters: quoted text may have any length

# Messages of torch, its devices, onnxruntime and C++ about a failed allocation.
_NO_MEMORY = re.compile(
    r"out of memory|not enough memory|allocate memory|failed to allocate|bad.?alloc", re.IGNORECASE
)
_LINE_ENDS = re.compile(r"[\t\n\r]+")


def one_line(error: BaseException | str) -> str:
    """The message of a third-party error in one line; the name of its class if it is empty."""
    return plain(" ".join(str(error).split())[:300]) or type(error).__name__


def os_reason(error: BaseException) -> str:
    """The system's message about a failure, without the name of the file."""
    if isinstance(error, FileExistsError):  # of a folder to be made
        return "a file has this name"
    return getattr(error, "strerror", None) or one_line(error)


def plain(text: str, most: int = MOST) -> str:
    """Return the text as one line that a terminal can show: unprintable characters are escaped, and
    the middle of a long text is left out."""
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

    Messages may quote files; the constructor, and nothing else, makes them printable.
    """

    def __init__(self, message: object = "") -> None:
        super().__init__(plain(str(message)))


class UnusedSettingError(InputError):
    """A setting that has no effect because of another one; the command line names its options."""

    def __init__(
        self, message: str, setting: str = "", other: str = "", values: tuple[object, ...] = ()
    ) -> None:
        super().__init__(message)
        self.setting = setting
        self.other, self.values = other, values  # it is used if `other` has one of these values


class UnsupportedError(InputError):
    """A well-formed network or property that the verifier does not support."""


class OutOfMemoryError(InputError):
    """An allocation that failed."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(
            f"out of memory: an allocation failed ({one_line(error)}); "
            "give --memory fewer gigabytes, so that less is taken at once"
        )


class OutOfTimeError(InputError):
    """The deadline passed before the search began, for example while a network was read."""


def ran_out_of_memory(error: BaseException) -> bool:
    """Return whether an error of any library means that an allocation failed."""
    return isinstance(error, MemoryError) or _NO_MEMORY.search(str(error)) is not None


@contextmanager
def memory_errors() -> Iterator[None]:
    """Turn a failed allocation in any library into an OutOfMemoryError."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        if not ran_out_of_memory(error):
            raise
        raise OutOfMemoryError(error) from None
