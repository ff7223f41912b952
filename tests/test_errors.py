"""An error that a user can cause says where, what, what would have been right, and what to do."""

import pytest

from qkv.errors import ConfigError, DataError, RunError, UserError, nearest


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (dict(), "found 3 lines."),
        (dict(file="train.ko"), "train.ko: found 3 lines."),
        (dict(file="train.ko", line=7), "train.ko:7: found 3 lines."),
        (dict(line=7), "found 3 lines."),
        (dict(expected="4."), "found 3 lines; expected 4."),
        (dict(remedy="add a line."), "found 3 lines. Add a line."),
        (
            dict(file="train.ko", line=7, expected="4", remedy="add a line"),
            "train.ko:7: found 3 lines; expected 4. Add a line.",
        ),
    ],
)
@pytest.mark.parametrize("wrong", ["found 3 lines", "found 3 lines."])
def test_an_error_is_one_plain_text(wrong, made, message):
    error = UserError(wrong, **made)
    assert str(error) == message
    assert (error.file, error.line) == (made.get("file"), made.get("line"))


@pytest.mark.parametrize("kind", [DataError, ConfigError, RunError])
def test_every_kind_is_a_users_error(kind):
    assert issubclass(kind, UserError)
    assert not issubclass(UserError, (ValueError, OSError))  # which are our own faults


def test_a_remedy_keeps_its_case_after_the_first_letter():
    assert str(ConfigError("x", remedy="use BLEU")) == "x. Use BLEU."


def test_the_nearest_name_comes_first_and_all_that_are_known_follow():
    assert nearest("dropuot", ["heads", "dropout"]) == "did you mean 'dropout'? known: dropout, heads"


def test_nothing_near_is_not_guessed_at():
    assert nearest("zzz", ["heads", "dropout"]) == "known: dropout, heads"
    assert nearest("zzz", []) == "known: "
