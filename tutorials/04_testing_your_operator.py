# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 4. Testing your operator with Hypothesis
#
# You have written an operator and a schedule that makes it fast. Is it right? For the arrays that
# you tried, perhaps. What about 17 columns, one row, none at all, a NaN in the last place? And
# when you change the schedule next month?
#
# [Hypothesis](https://hypothesis.readthedocs.io) is a library that *draws* test cases, and when one
# fails, looks for the smallest that still fails. `tensorlang.testing` teaches it to draw schedules.
# This page needs no GPU.

# %%
import matplotlib.pyplot as plt
import numpy as np
from hypothesis import HealthCheck, Phase, given, settings

import tensorlang as tl
from tensorlang import Func, Input, Pipeline, RDom, Schedule, Size, Var, f32
from tensorlang.testing import assert_equivalent
from tensorlang.testing.trials import trials

# %% [markdown]
# ## An operator
#
# Softmax over the rows of a matrix: subtract the largest of the row, take the exponential, divide
# by the sum.

# %%
M, N = Size("M"), Size("N")
A = Input("A", f32, [M, N])
i, j = Var("i"), Var("j")
k, r = RDom("k", N), RDom("r", N)

largest, power, softmax = Func("largest"), Func("power"), Func("softmax")
largest[i] = tl.max(A[i, k], over=k, initial=-1e30)
power[i, j] = tl.exp(A[i, j] - largest[i])
softmax[i, j] = power[i, j] / tl.sum(power[i, r], over=r)
operator = Pipeline("softmax", inputs=[A], outputs={softmax: [M, N]})
print(operator)

# %% [markdown]
# ## Three lines
#
# A **trial** is a legal schedule of the operator together with inputs for a call: sizes like 0, 1,
# 7 and 16, and sometimes NaN and infinities. `check` runs it and compares every element with what
# the *definition* says. In a file of tests you would leave the settings away: two lines, and the
# decorator.

# %%
quick = settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.generate, Phase.shrink],
)
seen = []


@quick
@given(trials(operator))
def test_softmax(trial):
    seen.append(trial.schedule)
    trial.check("interpreter")


test_softmax()

# %% [markdown]
# That was a test of the operator under schedules that nobody wrote. Here are some of them. Strange,
# and that is the point: what holds for these will hold for yours.

# %%
for schedule in sorted(set(seen), key=lambda s: len(str(s)))[-3:]:
    print(schedule, end="\n\n")

# %% [markdown]
# `trial.check("all")` runs on every target of the machine: the interpreter, C where there is a
# compiler, and Triton, with or without a GPU.
#
# ## What does "equal" mean?
#
# Not `==`, and not "close enough" either. The definition is evaluated a second time in intervals:
# for each element, the numbers that a correct program may give. What is exact by definition, such
# as integers, comparisons, or `+` of two floats, has one such number, and must match in all bits. A
# sum of `n` floats has an interval as wide as `n` roundings, `exp` one as wide as its documented
# error.

# %%
report = assert_equivalent(operator, Schedule(operator), "interpreter")
print(report)
assert report.loose == 0

# %% [markdown]
# In a softmax nothing is exact, so that every element has an interval. In a plain copy everything
# is: zero tolerance, without anyone having to choose a tolerance.

# %%
copied = Func("copied")
copied[i, j] = A[i, j]
copy = Pipeline("copy", inputs=[A], outputs={copied: [M, N]})
report = assert_equivalent(copy, Schedule(copy), "interpreter")
print(report)
assert report.exact == report.elements

# %% [markdown]
# ## When it fails
#
# The engine has been tested like this for a long time, so let us break it. Here is a fault as they
# really happen: a loop that is unrolled loses its last iteration. It is planted in the list of
# passes that make up the engine, just before loops are unrolled.

# %%
from dataclasses import replace

from tensorlang import lower
from tensorlang.errors import InternalError
from tensorlang.ir.expr import Const
from tensorlang.ir.stmt import For, LoopKind, map_children


def forget_the_last(program):
    """The fault."""

    def cut(stmt):
        stmt = map_children(stmt, cut)
        match stmt:
            case For(kind=LoopKind.UNROLLED, extent=Const() as extent) if extent.value > 1:
                return replace(stmt, extent=Const(extent.value - 1, extent.dtype))
            case _:
                return stmt

    return replace(program, body=cut(program.body))


passes = lower.PASSES
at = [step.name for step in passes].index("unroll_loops")
lower.PASSES = (*passes[:at], lower.Pass(forget_the_last), *passes[at:])

# %% [markdown]
# The test is for an operator with four columns, so that there is something to unroll. It is drawn
# anew, and fails, though nobody thought of unrolling in the first place.

# %%
four, doubled = Input("four", f32, [M, 4]), Func("doubled")
doubled[i, j] = four[i, j] * 2
small = Pipeline("small", inputs=[four], outputs={doubled: [M, 4]})
lengths = []


@settings(quick, max_examples=300, derandomize=True, database=None)
@given(trials(small, most=3))
def test_small(trial):
    lengths.append(len(trial.schedule.applied))
    trial.check("interpreter")


try:
    test_small()
except (AssertionError, InternalError) as error:
    failure = error

print(failure)

# %% [markdown]
# The interpreter keeps count of what it stores. Between the first failure and this message,
# Hypothesis tried to leave things out: directives, rows of the array, digits. This is how many
# directives the schedules had that it tried.

# %%
figure, axis = plt.subplots(figsize=(7, 2.4))
axis.step(range(len(lengths)), lengths, where="mid")
axis.set(xlabel="examples, in the order tried", ylabel="directives")
figure.tight_layout()
assert lengths[-1] <= max(lengths)

# %% [markdown]
# What is left has the directive at fault, `unroll`, and little else. And the failure carries a
# *program* that reproduces it, with the algorithm, the schedule and the arrays, to paste into an
# issue.

# %%
(note,) = (n for n in failure.__notes__ if "reproduces" in n)
title, _, program = note.partition("\n\n")
print(program)
assert "unroll" in program

# %% [markdown]
# Does it? It fails while the fault is there, and passes once it is repaired.

# %%
try:
    exec(program)
except (AssertionError, InternalError) as error:
    print("with the fault:", error)
    again = str(error)
assert again == str(failure)

lower.PASSES = passes
exec(program)
print("without: passes")

# %% [markdown]
# ## Your own schedule
#
# Drawn schedules test the operator. For the one schedule that you ship, draw only the inputs:

# %%
from tensorlang.testing.checking import check_schedule

mine = Schedule(operator)
mine[softmax].split(i, "io", "ii", 4).parallel("io").vectorize(j)
mine[largest].compute_at(softmax, "ii")
print(check_schedule(operator, mine, "interpreter", examples=20))

# %% [markdown]
# `tensorlang check FILE` does this on the command line, for every schedule in a file.
#
# ## What a test like this does not tell you
#
# It compares the program with the *definition*. If the definition says the wrong thing, all
# schedules agree on the wrong thing. So test the definition as well, against something that was
# written by someone else.

# %%
rows = np.random.default_rng(0).standard_normal((5, 7), dtype=np.float32)
by_hand = np.exp(rows - rows.max(axis=1, keepdims=True))
by_hand /= by_hand.sum(axis=1, keepdims=True)
assert np.allclose(operator.compile(mine, target="interpreter")(rows), by_hand, rtol=1e-6)

# %% [markdown]
# ## To try
#
# - Leave out `- largest[i]` in `power`. All schedules still agree. Which test notices?
# - Give `trials` another fault: exchange `<` and `<=` in a guard. What does it shrink to?
# - Draw `trials(operator, most=2)`. Which mistakes can schedules of two directives not show?
