"""One step of Conway's game of life on a torus."""

import numpy as np

from tensorlang import Func, Input, Pipeline, RDom, Schedule, Size, Var, i32, repeat_image, sum, u8

H, W = Size("H"), Size("W")
cells = Input("cells", u8, [H, W])
y, x = Var("y"), Var("x")
window = RDom("window", (-1, 3), (-1, 3))

# What.  repeat_image continues the board on the other side.
torus = repeat_image(cells)
around, step = Func("around"), Func("step")
around[y, x] = sum(i32(torus[y + window[0], x + window[1]]), over=window) - i32(torus[y, x])
born = around[y, x] == 3
survives = (around[y, x] == 2) & (torus[y, x] == 1)
step[y, x] = u8(born | survives)
life = Pipeline("life", inputs=[cells], outputs={step: [H, W]})

# How: rows in parallel; the window of nine cells is unrolled.
yo, yi = Var("yo"), Var("yi")
by_rows = Schedule(life)
by_rows[step].split(y, yo, yi, 16).parallel(yo)
by_rows["around_sum"].update(0).unroll(window[0]).unroll(window[1])

if __name__ == "__main__":
    board = np.zeros((6, 6), np.uint8)
    board[2, 1:4] = 1  # a blinker: three in a row become three in a column, and back
    kernel = life.compile(by_rows, target="c")
    turned = np.zeros((6, 6), np.uint8)
    turned[1:4, 2] = 1
    assert np.array_equal(kernel(board), turned)
    assert np.array_equal(kernel(turned), board)
    print(by_rows.loop_nest())
