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
# # 9. A camera pipeline
#
# A sensor sees one colour a pixel, in a mosaic, with some pixels stuck. A camera makes a photograph
# of it: stuck pixels are mended, the two missing colours of each pixel are interpolated, colours
# are corrected, brightness follows a curve, edges are sharpened. Five stencils and lookups in a
# row: the kind of program that scheduling languages were invented for. Each stage is one line; what
# makes it fast is *where* each stage is computed, and that is said apart from the lines.

# %%
import time

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.cbook import get_sample_data

from tensorlang import (
    Func,
    Input,
    Pipeline,
    Schedule,
    Size,
    Var,
    autoschedule,
    clamp,
    exp2,
    f32,
    i32,
    log2,
    maximum,
    minimum,
    select,
    u8,
    u16,
)
from tensorlang.target import available

target = "c" if available()["c"].works else "interpreter"

# %% [markdown]
# ## A photograph, as a sensor would have seen it
#
# We take a photograph apart: of each pixel one colour is kept, on the grid `G R / B G`, and one in
# two thousand is stuck at white.

# %%
photograph = plt.imread(get_sample_data("grace_hopper.jpg"))[:512, :512]
if target == "c":
    photograph = np.kron(photograph, np.ones((2, 2, 1), np.uint8))
else:
    photograph = photograph[100:132, 200:240]
height, width, _ = photograph.shape
light = (photograph / 255.0) ** 2.2 * 60000
colour = np.array([[1, 0], [2, 1]])[np.arange(height)[:, None] % 2, np.arange(width) % 2]
mosaic = np.take_along_axis(light, colour[..., None], 2)[..., 0].astype(np.uint16)
random = np.random.default_rng(0)
mosaic[random.random(mosaic.shape) < 1 / 2000] = 65535
# Four more pixels on each side, for the stencils; a mirror keeps the colours of the grid in place.
framed = np.pad(mosaic, 4, "reflect")

# %% [markdown]
# ## What
#
# A stuck pixel is unlike all four of its colour beside it: each is held between them.

# %%
H, W = Size("H"), Size("W")
c, y, x = Var("c"), Var("y"), Var("x")
sensor, matrix = Input("sensor", u16, [H + 8, W + 8]), Input("matrix", f32, [3, 3])

mended = Func("mended")
beside = [sensor[y + 2, x + 4], sensor[y + 6, x + 4], sensor[y + 4, x + 2], sensor[y + 4, x + 6]]
lowest = minimum(minimum(beside[0], beside[1]), minimum(beside[2], beside[3]))
highest = maximum(maximum(beside[0], beside[1]), maximum(beside[2], beside[3]))
mended[y, x] = f32(clamp(sensor[y + 4, x + 4], lowest, highest))

# %% [markdown]
# A pixel that has no green takes the mean of the four beside it; red and blue are left and right,
# above and below, or at the corners, as row and column tell.

# %%
here = mended[y, x]
across = (mended[y, x - 1] + mended[y, x + 1]) * 0.5
down = (mended[y - 1, x] + mended[y + 1, x]) * 0.5
corners = (
    mended[y - 1, x - 1] + mended[y - 1, x + 1] + mended[y + 1, x - 1] + mended[y + 1, x + 1]
) * 0.25
is_green, is_even = i32(y + x) % 2 == 0, y % 2 == 0

red, green, blue = Func("red"), Func("green"), Func("blue")
red[y, x] = select(is_green, select(is_even, across, down), select(is_even, here, corners))
green[y, x] = select(is_green, here, (across + down) * 0.5)
blue[y, x] = select(is_green, select(is_even, down, across), select(is_even, corners, here))

# %%
curved, smooth, picture = Func("curved"), Func("smooth"), Func("picture")
corrected = matrix[c, 0] * red[y, x] + matrix[c, 1] * green[y, x] + matrix[c, 2] * blue[y, x]
curved[c, y, x] = exp2(log2(clamp(corrected * (1 / 60000), 1e-6, 1.0)) * (1 / 2.2))
smooth[c, y, x] = (curved[c, y - 1, x] + curved[c, y, x] * 2.0 + curved[c, y + 1, x]) * 0.25
blurred = (smooth[c, y, x - 1] + smooth[c, y, x] * 2.0 + smooth[c, y, x + 1]) * 0.25
picture[c, y, x] = u8(clamp(curved[c, y, x] * 1.6 - blurred * 0.6, 0.0, 1.0) * 255.0 + 0.5)

camera = Pipeline("camera", inputs=[sensor, matrix], outputs={picture: [3, H, W]})
warm = np.array([[1.1, -0.05, -0.05], [-0.05, 1.1, -0.05], [-0.05, -0.05, 1.1]], np.float32)

# %% [markdown]
# ## How, step by step
#
# Every schedule below gives the same picture; only the time differs. A helper measures
# it: the least of several calls.

# %%
times: dict[str, float] = {}
pictures: dict[str, np.ndarray] = {}


def measure(name: str, s: Schedule) -> None:
    kernel = camera.compile(s, target=target)
    pictures[name] = kernel(framed, warm)
    spent = []
    for _ in range(5 if target == "c" else 1):
        start = time.perf_counter()
        kernel(framed, warm)
        spent.append(time.perf_counter() - start)
    times[name] = min(spent) * 1e3
    print(f"{name}: {times[name]:.1f} ms")


stages = [mended, red, green, blue, curved, smooth]

# %% [markdown]
# ### 1. One stage after the other
#
# Each Func over the whole picture, as an array library would do it. Every stage writes its result
# to memory, and the next reads it from there.

# %%
first = Schedule(camera)
for func in stages:
    first[func].compute_root()
measure("at root", first)
print(first.loop_nest())

# %% [markdown]
# ### 2. Vectors and threads
#
# Rows in parallel, eight or more pixels at a time: `vectorize` of a whole row leaves it to the
# compiler's backend to cut it. The loops are the same; they only run faster.

# %%
second = Schedule(camera)
for func in stages:
    second[func].compute_root().parallel(y).vectorize(x)
second[picture].reorder(y, c, x).parallel(y).vectorize(x)
measure("vectors, threads", second)

# %% [markdown]
# ### 3. Everything inlined
#
# The other extreme: nothing is stored. Each pixel of the picture computes all it needs, and what
# nine neighbours need is computed nine times, powers included.

# %%
third = Schedule(camera)
third[picture].reorder(y, c, x).parallel(y).vectorize(x)
measure("inlined", third)
print(third.loop_nest())

# %% [markdown]
# ### 4. Strips with windows
#
# Between the two: strips of 32 rows in parallel, and inside a strip a window slides down. Each row
# of a stage is computed once, just before the first row of the picture needs it, and kept in a ring
# of a few rows, which stays in the nearest cache: eight rows where five are needed, since a ring of
# a power of two is the quickest to go round.

# %%
fourth = Schedule(camera)
fourth[picture].split(y, "yo", "yi", 32).reorder("yo", "yi", c, x).parallel("yo").vectorize(x)
for func, rows in {mended: 8, red: 4, green: 4, blue: 4, curved: 4}.items():
    fourth[func].store_at(picture, "yo").fold_storage(y, rows)
    fourth[func].compute_at(picture, "yi").vectorize(x)
fourth[smooth].compute_at(picture, "yi").vectorize(x)
measure("windows", fourth)
print(fourth.loop_nest())

# %% [markdown]
# ### 5. A schedule from formulas
#
# `autoschedule` weighs for each stage what inlining would repeat against what storing costs. Its
# answer is a schedule like ours: it prints, and is a place to start from.

# %%
fifth = autoschedule(camera, "c")
measure("autoschedule", fifth)
print(fifth)

# %% [markdown]
# ## The same picture, five times

# %%
for name, found in pictures.items():
    difference = np.abs(found.astype(int) - pictures["at root"]).max()
    print(f"{name}: differs by at most {difference}")
    # exp2 and log2 of vectors and of numbers may round apart by one level of 255.
    assert difference <= 1

# %%
figure, (before, after, bars) = plt.subplots(1, 3, figsize=(12, 3.6))
before.imshow(mosaic, cmap="gray")
before.set_title("what the sensor saw")
after.imshow(np.moveaxis(pictures["windows"], 0, -1))
after.set_title("the photograph")
for axes in (before, after):
    axes.set_axis_off()
bars.barh(list(times), list(times.values()))
bars.invert_yaxis()
bars.set_xlabel("milliseconds")
figure.tight_layout()

# %% [markdown]
# The first and the fastest compute the same numbers. What changed is how far a value travels
# between the stage that makes it and the stage that uses it: through memory at root, nowhere when
# inlined but at the price of computing it again, and through a few rows of cache in the windows.
