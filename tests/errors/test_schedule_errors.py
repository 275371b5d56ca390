"""The whole message of what can be wrong with names in a schedule, and with its loops."""

import pytest

from tensorlang import Func, Input, Pipeline, Schedule, f32
from tests.errors.mistakes import Mistakes
from tests.errors.pipelines import N, chain, i, j, matmul, scan, softmax

mistake = Mistakes()


# --- names -------------------------------------------------------------------------------------


@mistake
def unknown_func():
    return Schedule(matmul)["E"]


@mistake
def unknown_func__to_compute_at():
    return Schedule(matmul)["C"].compute_at("E", "i")


@mistake
def unknown_func__to_compute_with():
    return Schedule(matmul)["C"].compute_with("C", "i")


@mistake
def unknown_func__to_roll_into():
    return Schedule(softmax)["m"].rolling_update("m", "k")


@mistake
def unknown_update():
    return Schedule(matmul)["C"].update(1)


@mistake
def unknown_loop():
    s = Schedule(matmul)
    s["D"].split(i, "io", "ii", 8).vectorize(i)


@mistake
def unknown_loop__to_compute_at():
    return Schedule(matmul)["C"].compute_at("D", "k")


@mistake
def unknown_dim():
    return Schedule(chain)["f"].fold_storage("x", 4)


@mistake
def not_a_name():
    return Schedule(matmul)["D"].vectorize(3)


@mistake
def input_has_no_loops():
    return Schedule(matmul)["A"].vectorize("i")


@mistake
def input_has_no_loops__to_clone():
    return Schedule(matmul)["A"].clone_in("C")


@mistake
def loop_name_taken():
    return Schedule(matmul)["D"].split(i, "io", "j", 8)


@mistake
def func_name_taken():
    a, f, copy, g = Input("A", f32, [N]), Func("f"), Func("f_in_g"), Func("g")
    f[i] = a[i] * 2
    copy[i] = f[i] + 1
    g[i] = f[i] + copy[i]
    p = Pipeline("copies", inputs=[a], outputs={g: [N]})
    return Schedule(p)["f"].in_("g")


@mistake
def func_name_taken__by_rfactor():
    s = Schedule(matmul)
    s["C"].update().rfactor("k", "u")
    s["C"].update().rfactor("k", "u")


@mistake
def not_a_consumer():
    return Schedule(chain)["g"].in_("f")


@mistake
def not_a_pipeline():
    return Schedule("matmul")


@mistake
def not_a_schedule():
    return matmul.compile("c")


@mistake
def unknown_update__by_name():
    return Schedule(matmul)["C"].update("k")


@mistake
def other_pipeline():
    return matmul.lower(Schedule(chain))


@mistake
def algorithm_changed():
    s = Schedule(matmul)
    s["D"].split("i", "io", "ii", 8).vectorize("ii")
    s["C"].compute_at("D", "io")
    s["C"].update().vectorize("j")
    return s.on(chain)


# --- loops -------------------------------------------------------------------------------------


@mistake
def factor_not_positive():
    return Schedule(matmul)["D"].split(i, "io", "ii", 0)


@mistake
def bad_arguments():
    return Schedule(matmul)["D"].split(i, "io", "ii", 8.0)


@mistake
def bad_arguments__for_a_word():
    return Schedule(matmul)["A"].cache(3)


@mistake
def factor_not_positive__of_a_ring():
    return Schedule(chain)["f"].fold_storage("i", -1)


@mistake
def unknown_tail():
    return Schedule(matmul)["D"].split(i, "io", "ii", 8, tail="clip")


@mistake
def tail_not_legal():
    return Schedule(matmul)["C"].update().split("k", "ko", "ki", 8, tail="shift_inwards")


@mistake
def tail_not_legal__past_the_domain():
    return Schedule(matmul)["C"].update().split("k", "ko", "ki", 8, tail="round_up")


@mistake
def not_adjacent():
    return Schedule(matmul)["C"].update().fuse(i, "k", "t")


@mistake
def two_ragged_loops():
    s = Schedule(matmul)
    s["D"].split(i, "io", "ii", 8, tail="ragged").split(j, "jo", "ji", 8, tail="ragged")
    s["D"].reorder("io", "jo", "ii", "ji").fuse("ii", "ji", "t")


@mistake
def ragged_outside():
    s = Schedule(matmul)
    s["D"].split(i, "io", "ii", 8, tail="ragged").reorder("ii", "io")


@mistake
def ragged_inside():
    s = Schedule(matmul)
    s["D"].split(i, "io", "ii", 8, tail="ragged").split("io", "ioo", "ioi", 2)
    s["D"].fuse("ioi", "ii", "t")


@mistake
def loop_named_twice():
    return Schedule(matmul)["D"].reorder(i, i)


@mistake
def loop_in_use():
    s = Schedule(matmul)
    s["C"].compute_at("D", i)
    s["D"].split(i, "io", "ii", 8)


@mistake
def order_matters():
    return Schedule(scan)["f"].update().reorder("r_1", "r_0")


@mistake
def extent_not_constant():
    s = Schedule(matmul)
    s["D"].unroll(j)
    return matmul.lower(s)


@mistake
def too_many_copies():
    s = Schedule(matmul)
    s["D"].split(j, "jo", "ji", 2**20).unroll("ji")
    return matmul.lower(s)


@mistake
def carried_dependence():
    return Schedule(scan)["f"].update().parallel("r_0")


@mistake
def carried_dependence__of_lanes():
    return Schedule(scan)["f"].update().vectorize("r_0")


@mistake
def carried_dependence__of_a_sum():
    return Schedule(matmul)["C"].update().parallel("k")


@mistake
def lanes_not_constant():
    s = Schedule(matmul)
    s["D"].split(j, "jo", "ji", 8, tail="ragged").vectorize("ji")
    return matmul.lower(s)


@mistake
def gpu_blocks_apart():
    s = Schedule(matmul)
    s["D"].split(i, "io", "ii", 8).vectorize("ii").reorder("ii", "io", j).gpu_blocks(j)
    return matmul.lower(s)


@mistake
def nested_gpu_blocks():
    s = Schedule(matmul)
    s["D"].gpu_blocks(i)
    s["C"].compute_at("D", i).gpu_blocks(j)
    return matmul.lower(s)


@pytest.mark.parametrize("name", mistake)
def test_the_message_of_a_wrong_schedule(name, golden):
    mistake.check(name, golden)
