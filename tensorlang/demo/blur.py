"""A 3x3 blur of a photograph in two stages, and three ways to run it."""

from tensorlang import Func, Input, Pipeline, Schedule, Size, Var, repeat_edge, u8, u16

H, W = Size("H"), Size("W")
photo = Input("photo", u8, [H, W])
y, x = Var("y"), Var("x")

# What: every row is averaged over three neighbours, and then every column.
edge = repeat_edge(photo)
blur_x, blur_y = Func("blur_x"), Func("blur_y")
blur_x[y, x] = (u16(edge[y, x - 1]) + edge[y, x] + edge[y, x + 1]) // 3
blur_y[y, x] = u8((blur_x[y - 1, x] + blur_x[y, x] + blur_x[y + 1, x]) // 3)
blur = Pipeline("blur", inputs=[photo], outputs={blur_y: [H, W]})

# How, first: each stage over the whole picture.  Nothing is computed twice, and everything goes
# through memory.
xo, xi, yo, yi = Var("xo"), Var("xi"), Var("yo"), Var("yi")
breadth_first = Schedule(blur)
breadth_first[blur_x].compute_root().split(x, xo, xi, 16).vectorize(xi)
breadth_first[blur_y].split(x, xo, xi, 16).vectorize(xi)

# How, second: blur_x where it is read.  Nothing goes through memory, and everything is computed
# three times.
inlined = Schedule(blur)
inlined[blur_x].compute_inline()
inlined[blur_y].parallel(y).split(x, xo, xi, 16).vectorize(xi)

# How, third: strips of 32 rows run in parallel; the rows of blur_x that a strip needs stay in the
# cache, and two in 34 are computed twice.
strips = Schedule(blur)
strips[blur_y].split(y, yo, yi, 32).parallel(yo).split(x, xo, xi, 16).vectorize(xi)
strips[blur_x].compute_at(blur_y, yo).split(x, xo, xi, 16).vectorize(xi)
