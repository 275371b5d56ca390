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
# # 3. When is a schedule legal?
#
# A schedule may run the points of a program in another order, or many of them at once. When does
# that leave the result alone? The answer is one picture: draw an arrow from each point to every
# point that comes after it and touches the same value. **A schedule is legal when no arrow points
# backwards.**
#
# This page draws the arrows, breaks the rule on purpose, and ends with the one way around it:
# changing the shape of a sum. It needs no GPU.

# %%
import itertools

import matplotlib.pyplot as plt
import numpy as np

import tensorlang as tl
from tensorlang import Func, Input, Pipeline, RDom, Schedule, ScheduleError, Size, Var, f32, i32
from tensorlang.testing import assert_equivalent

M, N = Size("M"), Size("N")
y, x = Var("y"), Var("x")

# %% [markdown]
# ## No arrows
#
# A *pure* definition gives the value at a point from other Funcs alone, never from itself. Its
# points know nothing of each other: there is no arrow, and every order is legal. Here are three.

# %%
A = Input("A", i32, [M, N])
double = Func("double")
double[y, x] = A[y, x] * 2
pure = Pipeline("pure", inputs=[A], outputs={double: [M, N]})

rows = Schedule(pure)
columns = Schedule(pure)
columns[double].reorder(x, y)
tiles = Schedule(pure)
tiles[double].tile(y, x, "yo", "xo", "yi", "xi", 3, 4)

# %% [markdown]
# The interpreter can say in which order elements are stored. So the order is not something to
# believe: here it is, as it happened.

# %%
from tensorlang.backends.interpreter import compile_program
from tensorlang.target import Target


def order_of(pipeline, schedule, array):
    """When each element of the output is stored for the last time."""
    when, clock = np.zeros(array.shape, int), itertools.count()

    def note(access):
        if access.kind == "store":
            when[access.indices] = next(clock)

    program = compile_program(pipeline.lower(schedule), Target("interpreter"), trace=note)
    sizes = {"M": array.shape[0], "N": array.shape[1]}
    program.run(sizes, {}, [array], [np.zeros_like(array)])
    return when


picture = np.arange(48, dtype=np.int32).reshape(6, 8)
figure, axes = plt.subplots(1, 3, figsize=(10, 2.8))
for axis, (name, schedule) in zip(
    axes, {"rows": rows, "columns": columns, "tiles": tiles}.items(), strict=True
):
    when = order_of(pure, schedule, picture)
    assert sorted(when.ravel()) == list(range(48))  # each point once, whatever the order
    path = np.argsort(when.ravel())
    axis.imshow(when, cmap="viridis")
    axis.plot(path % 8, path // 8, color="white", linewidth=1)
    axis.set_title(name)
    axis.axis("off")

# %% [markdown]
# ## One arrow
#
# An *update* may read what it wrote before. This one adds up along each row, and `RDom` says that
# its points run in order.

# %%
r = RDom("r", (1, N - 1))
total = Func("total")
total[y, x] = A[y, x]
total[y, r] = total[y, r - 1] + A[y, r]
scan = Pipeline("scan", inputs=[A], outputs={total: [M, N]})

assert np.array_equal(scan.compile(target="interpreter")(picture), np.cumsum(picture, axis=1))

# %% [markdown]
# The point `r` needs the point `r - 1` of the same row. So every arrow goes one step to the right,
# and none goes up or down.


# %%
def draw(axis, distance, *, width=6, height=4, title=""):
    """Points of a plane, with an arrow for each pair that is `distance` apart."""
    down, right = distance
    axis.scatter(*np.meshgrid(range(width), range(height)), s=14, color="black")
    for i, j in itertools.product(range(height), range(width)):
        if 0 <= i + down < height and 0 <= j + right < width:
            style = {"arrowstyle": "->", "color": "tab:red", "shrinkA": 4, "shrinkB": 4}
            axis.annotate("", (j + right, i + down), (j, i), arrowprops=style)
    axis.set(title=title, xlim=(-0.5, width - 0.5), ylim=(height - 0.5, -0.5))
    axis.set_aspect("equal")
    axis.axis("off")


figure, axis = plt.subplots(figsize=(4, 2.6))
draw(axis, (0, 1), title="total[y, r] needs total[y, r - 1]")

# %% [markdown]
# Reading the picture:
#
# - *Whole rows at once* (`parallel(y)`): no arrow joins two rows. Legal.
# - *Column by column* (`reorder(r, y)`): each arrow still goes from an earlier column to a later
#   one. Legal, and now the inner loop has no arrows, so it can be a vector.
# - *All of a row at once* (`parallel(r)`): the ends of an arrow run at the same time. Not legal.

# %%
in_rows = Schedule(scan)
in_rows[total].update(0).parallel(y)
in_columns = Schedule(scan)
in_columns[total].update(0).reorder(r, y).vectorize(y)
print(in_columns.loop_nest())

for schedule in (in_rows, in_columns):
    assert_equivalent(scan, schedule, "interpreter")


# %%
def refusal_of(attempt):
    """The error that an attempt to schedule ends in."""
    try:
        attempt()
    except ScheduleError as error:
        return error
    return None


refusal = refusal_of(lambda: Schedule(scan)[total].update(0).parallel(r))
assert refusal.code == "carried-dependence"
assert "r = 1 and r = 2" in str(refusal)
print(refusal)

# %% [markdown]
# Look at the line `why`. It does not say that some analysis failed. It names a **witness**: two
# iterations, `r = 1` and `r = 2`, that touch one element. You can check that by hand, and it tells
# you what to change.
#
# ## Arrows at an angle
#
# Now let a point need one that is `a` rows above and `b` columns to the left. `b` may be negative:
# then it lies to the right. The loops run down the rows. May they be exchanged, to go column by
# column?


# %%
def recurrence(a, b):
    """f[i, j] needs f[i - a, j - b], in the middle of a plane of 12 by 12."""
    plane, f = Input("plane", i32, [12, 12]), Func("f")
    d = RDom("d", (3, 6), (3, 6))
    f[y, x] = plane[y, x]
    f[d[0], d[1]] = f[d[0] - a, d[1] - b] * 3 + plane[d[0], d[1]]
    return Pipeline("recurrence", inputs=[plane], outputs={f: [12, 12]})


arrows = {"f[i - 1, j]": (1, 0), "f[i - 1, j - 1]": (1, 1), "f[i - 1, j + 1]": (1, -1)}
figure, axes = plt.subplots(1, 3, figsize=(10, 2.6))
for axis, (needed, distance) in zip(axes, arrows.items(), strict=True):
    draw(axis, distance, title=f"f[i, j] needs {needed}")

# %% [markdown]
# Going column by column, an arrow that leans to the left points backwards: `(1, -1)` is the one
# that must be refused. Let us not take that on trust, but try *every* distance of up to two steps:
# once by asking tensorlang, and once by running the loops in both orders in plain Python and
# comparing the numbers.


# %%
def is_allowed(a, b):
    """Whether tensorlang lets the loops be exchanged."""
    update = Schedule(recurrence(a, b))["f"].update(0)
    return refusal_of(lambda: update.reorder("d_1", "d_0")) is None


def is_right(a, b):
    """Whether the numbers are the same in both orders."""
    plane = np.random.default_rng(0).integers(-99, 99, (12, 12))
    by_rows, by_columns = plane.copy(), plane.copy()
    for i, j in itertools.product(range(3, 9), range(3, 9)):
        by_rows[i, j] = by_rows[i - a, j - b] * 3 + plane[i, j]
        by_columns[j, i] = by_columns[j - a, i - b] * 3 + plane[j, i]
    return np.array_equal(by_rows, by_columns)


steps = range(-2, 3)
allowed = np.array([[is_allowed(a, b) for b in steps] for a in steps])
right = np.array([[is_right(a, b) for b in steps] for a in steps])
assert np.array_equal(allowed, right)  # neither too lax nor too strict

figure, axis = plt.subplots(figsize=(3.4, 3.4))
axis.imshow(allowed, cmap="RdYlGn", vmin=-0.3, vmax=1.3)
axis.set(xticks=range(5), yticks=range(5), xticklabels=steps, yticklabels=steps)
axis.set(xlabel="columns", ylabel="rows", title="may the loops be exchanged?")
figure.tight_layout()
print(f"{allowed.sum()} of 25 may be exchanged; in all 25, Python says the same")

# %% [markdown]
# Red are the distances with one step forward and one back, in the two remaining corners. It does
# not matter which of the two ends of the arrow reads: a value that must be read *before* it is
# overwritten is an arrow as well.
#
# ## The exception: sums
#
# In a sum every term goes to the same element, so that there is an arrow from each term to the
# next. By the rule above nothing could ever be done to a sum. But a sum may be *re-associated*:
# `(a + b) + c` is `a + (b + c)`. That is a fact about `+`, not about the loops, and tensorlang does
# not take your word for it. It recognises the update as one of a list of operators for which it is
# known. This update looks like one, and is not.

# %%
k = RDom("k", N)
horner = Func("horner")
horner[y] = i32(0)
horner[y] = horner[y] * 2 + A[y, k]
polynomial = Pipeline("polynomial", inputs=[A], outputs={horner: [M]})

refusal = refusal_of(lambda: Schedule(polynomial)[horner].update(0).rfactor(k, "u"))
assert refusal.code == "not-associative"
print(refusal)

# %% [markdown]
# ## rfactor: a sum of sums
#
# A real sum, on the other hand, can be cut into pieces which are summed on their own, all at once,
# and then added up. `rfactor(ko, u)` makes a Func of the pieces, with one element for each `u`:
#
#     sum over k of a[k]   ==   sum over ko of ( sum over ki of a[ko*4 + ki] )
#                                                `------- piece[ko] ------'

# %%
a = Input("a", i32, [N])
k, u, ko, ki = RDom("k", N), Var("u"), Var("ko"), Var("ki")
result = Func("result")
result[()] = tl.sum(a[k], over=k)
summing = Pipeline("summing", inputs=[a], outputs={result: []})

pieces = Schedule(summing)
piece = pieces[result].update(0).split(k, ko, ki, 4).rfactor(ko, u)
pieces[piece].compute_root()
pieces[piece].update(0).parallel(u)
print(pieces.loop_nest())

# %% [markdown]
# The loop over `u` is parallel: each piece has an element of its own, so that the arrows between
# the pieces are gone. The 129 numbers below do not divide by 4. The last piece has one term.

# %%
kernel = summing.compile(pieces, target="interpreter")
assert kernel(np.arange(129, dtype=np.int32)) == 8256
assert_equivalent(summing, pieces, "interpreter")

# %% [markdown]
# What about a `min`, where an empty piece has no smallest number? It begins with the *identity* of
# `min`, the largest number there is, and not with 0. A system that gets that wrong gives 0 here.

# %%
smallest = Func("smallest")
smallest[()] = tl.min(a[k], over=k)
least = Pipeline("least", inputs=[a], outputs={smallest: []})

twice = Schedule(least)
outer = twice[smallest].update(0).split(k, ko, ki, 4).rfactor(ko, u)
twice[outer].compute_root()
inner = twice[outer].update(0).split(ki, "kio", "kii", 3).rfactor("kio", "v")
twice[inner].compute_root()
print(twice)
assert least.compile(twice, target="interpreter")(np.arange(5, 14, dtype=np.int32)) == 5

# %% [markdown]
# ## What it costs: the last bits
#
# Integers come out the same in whatever way they are grouped. Sums of floats do not: each addition
# rounds, so another grouping gives other last bits. This is the one thing that a schedule may do
# to your numbers, and there is a bound on it: `n` roundings, each relative to the sum of absolute
# values.

# %%
b = Input("b", f32, [N])
floating = Func("floating")
floating[()] = tl.sum(b[k], over=k)
adding = Pipeline("adding", inputs=[b], outputs={floating: []})


def in_pieces(length):
    """The sum in pieces of so many terms."""
    schedule = Schedule(adding)
    made = schedule[floating].update(0).split(k, ko, ki, length).rfactor(ko, u)
    schedule[made].compute_root()
    return schedule


numbers = np.random.default_rng(1).standard_normal(1000).astype(np.float32)
exact = numbers.astype(np.float64).sum()
bound = 1000 * np.finfo(np.float32).eps * np.abs(numbers).sum()
lengths = [1000, 500, 100, 30, 10, 3]
errors = []
for length in lengths:
    value = adding.compile(in_pieces(length), target="interpreter")(numbers)
    errors.append(abs(float(value) - exact))
    assert errors[-1] <= bound

figure, axis = plt.subplots(figsize=(6, 2.8))
axis.bar([str(n) for n in lengths], errors)
axis.set(xlabel="terms in a piece", ylabel="error", title=f"all far below the bound, {bound:.1e}")
figure.tight_layout()

# %% [markdown]
# ## A triangle
#
# A rule that refuses too much is as bad as one that refuses too little: it takes away schedules
# that you had a right to. This update runs over a triangle, `i >= j`. Its points do not touch each
# other, so that it may be tiled and turned around, and the other half must stay as it was.

# %%
square, lower = Input("square", i32, [N, N]), Func("lower")
d = RDom("d", (0, N), (0, N))
below = d.where(d[0] >= d[1])
lower[y, x] = square[y, x]
lower[below[0], below[1]] = lower[below[0], below[1]] * 10
triangle = Pipeline("triangle", inputs=[square], outputs={lower: [N, N]})

turned = Schedule(triangle)
turned[lower].update(0).tile("d_0", "d_1", "io", "jo", "ii", "ji", 3, 3)
turned[lower].update(0).reorder("jo", "io", "ji", "ii").parallel("jo")
ones = np.ones((7, 7), np.int32)
made = triangle.compile(turned, target="interpreter")(ones)
assert np.array_equal(made, ones + 9 * np.tril(ones))

figure, axis = plt.subplots(figsize=(2.6, 2.6))
axis.imshow(made, cmap="Blues")
axis.set_title("tiled, turned, in parallel")
axis.axis("off")

# %% [markdown]
# ## In short
#
# | what | when it is legal |
# | --- | --- |
# | anything, on a pure definition | always |
# | `reorder` of an update | no arrow is turned around |
# | `parallel`, `vectorize` of its loop | no arrow along it, unless a serial loop outside has it |
# | `rfactor`, `vectorize` of a reduction | the operator is known to be associative |
#
# When a schedule is refused, look for the witness. When it is accepted, it does not change the
# result, and the next page shows how you test that for an operator of your own.
#
# ## To try
#
# - Which exchanges are legal for `f[i, j] = f[i - 1, j] + f[i, j - 1]`? Draw both arrows first.
# - Ask for `rfactor` on an `argmax`. It works. Why may its loop still not be reordered?
# - Make `lower` read its neighbour on the left. What does `parallel("jo")` say now?
#
# Next: [testing your operator with Hypothesis](04_testing_your_operator.py).
