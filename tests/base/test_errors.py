from __future__ import annotations

import pickle

import pytest

from fgp_vnn.base.errors import MOST, InputError, UnsupportedError, one_line, plain


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain text", "plain text"),
        ("caf\u00e9 \u2264 1", "caf\u00e9 \u2264 1"),
        ("\x1b[31mred\x07", "\\x1b[31mred\\x07"),
        ("\x9b31m", "\\x9b31m"),
        ("a\u202eb", "a\\u202eb"),
        ("a\udc80b", "a\\udc80b"),
        ("two\r\nlines\there", "two lines here"),
    ],
)
def test_messages_hold_nothing_that_a_terminal_would_obey(text: str, shown: str) -> None:
    for kind in (InputError, UnsupportedError):
        assert str(kind(text)) == shown
    assert plain(shown) == shown
    assert plain(text).isprintable() and one_line(ValueError(text)).isprintable()


def test_long_messages_keep_their_beginning_and_their_end() -> None:
    message = str(InputError("begin " + "1" * 100_000 + " end"))
    assert len(message) <= MOST
    assert message.startswith("begin 1") and message.endswith("1 end") and " ... " in message
    assert str(InputError(message)) == message


def test_an_error_survives_its_way_between_processes() -> None:
    error = pickle.loads(pickle.dumps(UnsupportedError("a\x1bb")))
    assert isinstance(error, UnsupportedError) and str(error) == "a\\x1bb"
