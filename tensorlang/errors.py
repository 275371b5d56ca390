"""Every error a user can meet, in four parts: what, where, why, and what would be legal."""

from tensorlang.span import Span, caller_span


class TensorlangError(Exception):
    """Base of all user errors.

    Args:
        code: a stable name of the mistake (`unknown-loop`), listed in the error manual.
        what: one line that says what cannot be done, naming the Func, loop or argument.
        why: the reason, in terms of the user's program.
        fix: what would be legal instead.
        span: where the user wrote it; by default the calling line outside this package.
        nest: the loop nest concerned, where there is one.
    """

    def __init__(
        self,
        code: str,
        what: str,
        *,
        why: str,
        fix: str,
        span: Span | None = None,
        nest: str | None = None,
    ) -> None:
        self.code, self.what, self.why, self.fix, self.nest = code, what, why, fix, nest
        self.span = span if span is not None else caller_span()
        super().__init__(self.render())

    def render(self) -> str:
        """The whole message as shown to the user."""
        lines = [f"{type(self).__name__}[{self.code}]: {self.what}"]
        if self.span is not None:
            lines.append(self.span.show())
        for label, text in (("why", self.why), ("nest", self.nest), ("fix", self.fix)):
            if text:
                lines.append(f"  {label + ':':<6}" + text.replace("\n", "\n        "))
        return "\n".join(lines)

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (
            type(self),
            self.code,
            self.what,
            self.why,
            self.fix,
            self.span,
            self.nest,
        )


def _rebuild(
    cls: type[TensorlangError],
    code: str,
    what: str,
    why: str,
    fix: str,
    span: Span | None,
    nest: str | None,
) -> TensorlangError:
    error = cls(code, what, why=why, fix=fix, span=span, nest=nest)
    # Where there was no span, the line that unpickles is none either.
    error.span = span
    error.args = (error.render(),)
    return error


class DefinitionError(TensorlangError):
    """The algorithm itself is wrong: types, names, missing definitions, unbounded indices."""


class ScheduleError(TensorlangError):
    """A directive or a whole schedule is not legal for this algorithm."""


class ShapeError(TensorlangError):
    """An argument of a call does not fit: count, rank, dtype, size, layout."""


class BoundsError(TensorlangError):
    """An access would leave an array, or a promise about a value does not hold."""


class TargetError(TensorlangError):
    """A target is absent, cannot run this program, or does not know the machine."""


class ParseError(TensorlangError):
    """A text is not an algorithm, a schedule or loop IR."""


class InternalError(Exception):
    """A fault in tensorlang itself.  No user input may reach it; please report it."""
