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
# # 1. What and how are separate
#
# A fast program usually says two things at once. It says *what* is computed: here, each pixel of a
# blurred picture is the mean of its neighbours. And it says *how*: in which order, in tiles of
# which size, on how many cores, with what kept in memory and what computed again. In C or CUDA the
# two are woven together, so that trying another *how* means writing the program again, and every
# rewrite is a chance to get the *what* wrong.
#
# In tensorlang they are two values. You write the *what* once. Then you write as many *hows* as you
# like, and none of them can change the result.
#
# This page takes one small program, a blur, through that idea. It needs no GPU.

# %%
import matplotlib.pyplot as plt
import numpy as np
from skimage import data

from tensorlang import Func, Input, Pipeline, Schedule, Size, Var, repeat_edge, u8, u16
from tensorlang.target import available

photo = data.camera()
photo.shape, photo.dtype

# %% [markdown]
# ## What
#
# A `Var` names a coordinate. A `Func` is a function over *all* integer coordinates: it has no size
# and no memory, only a definition. An `Input` is an array that the caller gives, and a `Size` is a
# number read off its shape, so that one program serves every size.
#
# Indices are in NumPy's order: `f[y, x]`, and the last one is contiguous in memory.

# %%
H, W = Size("H"), Size("W")
image = Input("image", u8, [H, W])
y, x = Var("y"), Var("x")

# %% [markdown]
# A 3x3 mean is two means of three: first along each row, then along each column. That is two
# definitions.
#
# - `u16(...)` converts: the sum of three bytes does not fit in a byte. Casts are part of the
#   *what*. Nothing is widened or narrowed behind your back, because that would change the numbers.
# - `repeat_edge(image)` is the image continued beyond its edge. An `Input` has values only inside
#   its shape, so the program has to say what lies outside. Leave it out, and the call fails, naming
#   the dimension that is too small.

# %%
edge = repeat_edge(image)
blur_x, blur_y = Func("blur_x"), Func("blur_y")
blur_x[y, x] = (u16(edge[y, x - 1]) + edge[y, x] + edge[y, x + 1]) // 3
blur_y[y, x] = u8((blur_x[y - 1, x] + blur_x[y, x] + blur_x[y + 1, x]) // 3)

# %% [markdown]
# A `Pipeline` closes the algorithm: these inputs, and this output with this shape. It is a value
# that never changes, and it prints.

# %%
blur = Pipeline("blur", inputs=[image], outputs={blur_y: [H, W]})
print(blur)

# %% [markdown]
# It can be called at once. With no schedule it runs a correct one of its own.

# %%
blurred = blur(photo)

face = np.s_[90:190, 180:280]
figure, (left, right) = plt.subplots(1, 2, figsize=(8, 4))
left.imshow(photo[face], cmap="gray")
left.set_title("before")
right.imshow(blurred[face], cmap="gray")
right.set_title("after")
for axes in (left, right):
    axes.axis("off")

# %% [markdown]
# Is it right? NumPy can say the same thing, one whole array at a time.

# %%
wide = np.pad(photo, 1, mode="edge").astype(np.uint16)
rows = (wide[:, :-2] + wide[:, 1:-1] + wide[:, 2:]) // 3
by_hand = ((rows[:-2] + rows[1:-1] + rows[2:]) // 3).astype(np.uint8)
assert np.array_equal(blurred, by_hand)

# %% [markdown]
# ## How
#
# A `Schedule` is a list of directives over one Pipeline. An empty one gives plain loops, outermost
# first in the order of the indices. `loop_nest()` shows them.

# %%
plain = Schedule(blur)
print(plain.loop_nest())

# %% [markdown]
# ### Where is `blur_x` computed?
#
# This is the question that matters most. There are two extremes.
#
# **Inline.** That is what you just saw, since it is the default: `blur_x` has no loops of its own,
# and its definition stands where it is read. Nothing is stored. But `blur_y` reads three points of
# it, so that everything is computed three times.

# %%
inlined = Schedule(blur)
inlined[blur_x].compute_inline()
assert inlined.loop_nest() == plain.loop_nest()

# %% [markdown]
# **Root.** All of `blur_x`, before any of `blur_y`. Each value is computed once. But it is written
# to memory and read back three times, and when the picture is larger than the cache, memory is what
# you wait for.

# %%
breadth_first = Schedule(blur)
breadth_first[blur_x].compute_root()
print(breadth_first.loop_nest())

# %% [markdown]
# **In between.** Cut `blur_y` into strips of 32 rows, and compute for each strip what it needs of
# `blur_x`: 34 rows. Little is computed twice, and the 34 rows stay in the cache.
#
# `split(y, yo, yi, 32)` replaces the loop `y` by two: `y == yo * 32 + yi`. `compute_at(blur_y, yo)`
# puts the loops of `blur_x` into the loop `yo` of `blur_y`. How many rows that is, you do not say:
# it is inferred from what is read.

# %%
yo, yi, xo, xi = Var("yo"), Var("yi"), Var("xo"), Var("xi")

strips = Schedule(blur)
strips[blur_y].split(y, yo, yi, 32)
strips[blur_x].compute_at(blur_y, yo)
print(strips.loop_nest())

# %% [markdown]
# ### In which way do the loops run?
#
# The strips do not depend on each other, so they can run on several cores: `parallel`. The pixels
# of a row can be computed several at once by the vector unit of the processor: `split` off a loop
# of 16 and `vectorize` it.

# %%
fast = Schedule(blur)
fast[blur_y].split(y, yo, yi, 32).parallel(yo).split(x, xo, xi, 16).vectorize(xi)
fast[blur_x].compute_at(blur_y, yo).split(x, xo, xi, 16).vectorize(xi)
print(fast.loop_nest())

# %% [markdown]
# Does 32 divide the height? It need not. The last strip is cut to what is left, by a guard, and no
# schedule ever computes a pixel that you did not ask for.
#
# ## None of them changes the result
#
# `compile` joins the *what*, the *how*, and a target to run on. The C target writes C and compiles
# it. Where there is no C compiler, the interpreter runs the same loops, slowly.

# %%
schedules = {
    "inlined": inlined,
    "breadth first": breadth_first,
    "strips": strips,
    "fast": fast,
}
target = "c" if available()["c"].works else "interpreter"
picture = photo if target == "c" else photo[:64, :64]
expected = blur.compile(plain, target="reference")(picture)

for name, schedule in schedules.items():
    kernel = blur.compile(schedule, target=target)
    assert np.array_equal(kernel(picture), expected)
    print(f"{name:15} equal")

# %% [markdown]
# The `reference` target does not know schedules: it evaluates the definitions by whole-array NumPy
# and shares no code with the part that turns schedules into loops. So when the two agree, it means
# something.
#
# What it does change is the time.

# %%
import time


def best_time(kernel, *arguments):
    """The shortest of 20 calls, in milliseconds."""
    times = []
    for _ in range(20):
        start = time.perf_counter()
        kernel(*arguments)
        times.append(time.perf_counter() - start)
    return 1e3 * min(times)


large = np.tile(photo, (4, 4)) if target == "c" else picture
for name, schedule in schedules.items():
    print(f"{name:15} {best_time(blur.compile(schedule, target=target), large):8.3f} ms")

# %% [markdown]
# Your machine will give other numbers than mine, and perhaps another order. That is the point:
# which schedule is best is a property of the machine, and the definition does not change when you
# look for it.
#
# ## Looking inside
#
# Between the schedule and the machine there is nothing hidden. This is the *loop IR*, the program
# that all targets run. It is text that parses back, and the interpreter runs it, checking every
# access.

# %%
print(blur.lower(strips))

# %% [markdown]
# And this is the C that came of it.

# %%
if target == "c":
    print(blur.compile(strips, target="c").source)

# %% [markdown]
# ## Mistakes
#
# A schedule that makes no sense is refused where you wrote it. The message says what, where, why,
# and what would be legal instead. Here `blur_x` is to be computed inside a loop that `blur_y` does
# not have.

# %%
from tensorlang import ScheduleError

wrong = Schedule(blur)
try:
    wrong[blur_x].compute_at(blur_y, "rows")
    wrong.loop_nest()
except ScheduleError as error:
    print(error)

# %% [markdown]
# ## A schedule is a value
#
# It prints, one chain of directives a line, and the text reads back. So it can be kept in a file,
# sent to a colleague, compared, or made by a program that looks for the best one.

# %%
text = str(fast)
print(text)
assert Schedule.parse(text, blur) == fast

# %% [markdown]
# ## To try
#
# - Cut `blur_y` into tiles (`tile(y, x, yo, xo, yi, xi, 32, 128)`) and compute `blur_x` at `xo`.
#   What is computed twice now?
# - Compute `blur_x` at `yi`, once for each row. What does that cost, and how would you avoid it?
# - Write a 5x5 blur. Which lines change? Do the schedules have to?
#
# Next: [one matmul, six schedules](02_one_matmul_six_schedules.py).
