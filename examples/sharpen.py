"""An unsharp mask: what the blur took away from an image, added to it."""

import numpy as np

from tensorlang import Func, Input, Param, Pipeline, Schedule, Size, Var, clamp, f32, repeat_edge

H, W = Size("H"), Size("W")
image, amount = Input("image", f32, [H, W]), Param("amount", f32)
y, x = Var("y"), Var("x")

# What.
edge = repeat_edge(image)
blur_y, blur, sharp = Func("blur_y"), Func("blur"), Func("sharp")
blur_y[y, x] = (edge[y - 1, x] + 2 * edge[y, x] + edge[y + 1, x]) / 4
blur[y, x] = (blur_y[y, x - 1] + 2 * blur_y[y, x] + blur_y[y, x + 1]) / 4
sharp[y, x] = clamp(image[y, x] + amount * (image[y, x] - blur[y, x]), 0, 1)
sharpen = Pipeline("sharpen", inputs=[image], outputs={sharp: [H, W]})

# How: in tiles.  blur_y is computed for each tile with a column more on either side; blur, of one
# definition, stands where it is read.
yo, xo, yi, xi = Var("yo"), Var("xo"), Var("yi"), Var("xi")
tiles = Schedule(sharpen)
tiles[sharp].tile(y, x, yo, xo, yi, xi, 32, 64).parallel(yo).vectorize(xi)
tiles[blur_y].compute_at(sharp, xo)

if __name__ == "__main__":
    pixels = np.random.default_rng(0).random((100, 150), dtype=np.float32)
    result = sharpen.compile(tiles, target="c")(pixels, amount=1.5)
    plain = sharpen.compile(Schedule(sharpen), target="reference")(pixels, amount=1.5)
    assert np.array_equal(result, plain)
    print(tiles.loop_nest())
