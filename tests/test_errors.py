import copy
import pickle

import pytest

from tensorlang.errors import (
    BoundsError,
    DefinitionError,
    InternalError,
    ParseError,
    ScheduleError,
    ShapeError,
    TargetError,
    TensorlangError,
)
from tensorlang.span import Span

SPAN = Span("blur.py", 42, 13, 24, "    s[blur_y].unroll(x_i)")
USER_ERRORS = (DefinitionError, ScheduleError, ShapeError, BoundsError, TargetError, ParseError)


def error() -> ScheduleError:
    return ScheduleError(
        "extent-not-constant",
        "cannot unroll 'x_i' of 'blur_y'",
        why="'n' is a Param,\nknown only when the kernel is called",
        fix="split by an int",
        span=SPAN,
        nest="for y in [0, H): blur_y",
    )


def test_a_message_has_four_parts_and_the_nest():
    assert (
        str(error())
        == """\
ScheduleError[extent-not-constant]: cannot unroll 'x_i' of 'blur_y'
  --> blur.py:42:14
      s[blur_y].unroll(x_i)
               ^^^^^^^^^^^
  why:  'n' is a Param,
        known only when the kernel is called
  nest: for y in [0, H): blur_y
  fix:  split by an int"""
    )


def test_a_message_without_a_nest_has_no_line_for_it():
    made = ShapeError("c", "what", why="why", fix="fix", span=SPAN)
    assert "nest" not in str(made)


@pytest.mark.parametrize("duplicate", [copy.copy, lambda e: pickle.loads(pickle.dumps(e))])
def test_an_error_crosses_processes_whole(duplicate):
    again = duplicate(error())
    assert type(again) is ScheduleError
    assert str(again) == str(error())
    assert (again.code, again.span, again.nest) == (error().code, SPAN, error().nest)


def test_an_error_without_a_span_gets_none_on_the_way():
    made = error()
    made.span = None
    again = pickle.loads(pickle.dumps(made))
    assert again.span is None
    assert "-->" not in str(again)


def test_an_error_with_no_span_given_points_at_its_caller():
    made = DefinitionError("c", "what", why="why", fix="fix")
    assert made.span is not None
    assert made.span.path == __file__


def test_users_meet_only_tensorlang_errors_and_never_an_internal_one():
    assert all(issubclass(kind, TensorlangError) for kind in USER_ERRORS)
    assert not issubclass(InternalError, TensorlangError)
