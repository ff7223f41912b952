"""Reading ahead changes when batches are made, and nothing else."""

import threading

import pytest

from qkv.errors import DataError
from qkv.tasks.task import Position
from qkv.train.ahead import ReadAhead


def test_what_is_expected_is_read_before_it_is_taken():
    read, taken = threading.Event(), []

    def slow(position):
        read.set()
        return position.batch * 10

    with ReadAhead(slow) as ahead:
        ahead.expect(Position(0, 1))
        assert read.wait(10)
        taken.append(ahead.take(Position(0, 1)))
        taken.append(ahead.take(Position(0, 2)))  # not expected: read now
        ahead.expect(Position(0, 3))
        taken.append(ahead.take(Position(1, 0)))  # another than expected, as after a jump
    assert taken == [10, 20, 0]


def test_an_error_of_reading_is_raised_where_it_is_taken():
    def broken(_):
        raise DataError("the picture is gone")

    with ReadAhead(broken) as ahead:
        ahead.expect(Position())
        with pytest.raises(DataError, match="the picture is gone"):
            ahead.take(Position())
