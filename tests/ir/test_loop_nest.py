from tensorlang.ir.expr import Const, Expr, Size, Var
from tensorlang.ir.loop_nest import loop_nest, nest_line
from tensorlang.ir.stmt import (
    Allocate,
    Block,
    Buffer,
    Dim,
    For,
    If,
    Let,
    LoopKind,
    Stage,
    Stmt,
    Store,
    block,
)
from tensorlang.ir.types import f32, index

ZERO = Const(0, index)
H, W = Size("H"), Size("W")
SERIAL, PARALLEL, LANES = LoopKind.SERIAL, LoopKind.PARALLEL, LoopKind.VECTORIZED


def store(name: str, number: int = 0) -> Stage:
    return Stage(name, number, Store(name, (), (Const(0.0, f32),)))


def loop(var: str, extent: Expr, *body: Stmt, low: Expr = ZERO, kind: LoopKind = SERIAL) -> For:
    return For(var, low, extent, kind, block(*body))


BLUR = loop(
    "out.yo",
    (H + 31) // 32,
    Let(
        "blur.y.min",
        Var("out.yo") * 32,
        Allocate(
            Buffer("blur", (f32,), (Dim(Var("blur.y.min"), Const(34, index)), Dim(ZERO, W))),
            Block(
                (
                    loop("blur.y", Const(34, index), store("blur"), low=Var("blur.y.min")),
                    loop(
                        "out.yi",
                        Const(32, index),
                        Let(
                            "out.y",
                            Var("out.yo") * 32 + Var("out.yi"),
                            If(
                                Var("out.y") < H,
                                loop("out.x", W, store("out"), kind=LANES),
                            ),
                        ),
                    ),
                )
            ),
        ),
    ),
    kind=PARALLEL,
)


def test_a_nest_shows_loops_storage_and_what_is_stored():
    assert (
        loop_nest(BLUR)
        == """\
parallel yo in [0, ceil(H/32)):
  allocate blur[34, W]
  for y in [yo*32, +34):
    blur[...] = ...
  for yi in [0, 32):
    vectorized x in [0, W):
      out[...] = ..."""
    )


def test_one_line_holds_the_loops_of_one_func_or_of_all():
    head = "parallel yo in [0, ceil(H/32)): "
    blur = "for y in [yo*32, +34): blur"
    out = "for yi in [0, 32): vectorized x in [0, W): out"
    assert nest_line(BLUR) == f"{head}{{ {blur}; {out} }}"
    assert nest_line(BLUR, "out") == f"{head}{out}"
    assert nest_line(BLUR, "blur") == f"{head}{blur}"
    assert nest_line(BLUR, "other") == ""


def test_a_name_keeps_its_func_where_another_loop_around_has_it():
    nest = loop("f.i", H, loop("g.i", Var("f.i"), store("g")))
    assert loop_nest(nest) == "for i in [0, H):\n  for g.i in [0, i):\n    g[...] = ..."


def test_updates_are_told_apart():
    nest = block(loop("C.i", H, store("C")), loop("C.i", H, loop("C.k", W, store("C", 1))))
    assert loop_nest(nest).splitlines()[-1] == "    C[...] = ...  # C.update(0)"
    assert nest_line(nest) == "for i in [0, H): C; for i in [0, H): for k in [0, W): C.update(0)"


def test_storage_at_root_is_not_told():
    kept = Allocate(Buffer("f", (f32,), ()), loop("f.i", H, store("f")))
    assert loop_nest(kept) == "for i in [0, H):\n  f[...] = ..."


def test_a_choice_made_by_the_call_is_told_and_a_guard_is_not():
    body = If(Var("f.i") < H, store("f"))
    nest = If(H < 100, Let("f.i.extent", H, loop("f.i", Var("f.i.extent"), body)))
    assert loop_nest(nest) == "if H < 100:\n  for i in [0, H):\n    f[...] = ..."
    assert loop_nest(loop("f.i", H, If(H < 5, body))) == (
        "for i in [0, H):\n  if H < 5:\n    f[...] = ..."
    )


def test_a_symbolic_factor_makes_a_ceil():
    assert loop_nest(loop("f.i", (W + H - 1) // H, store("f"))).startswith(
        "for i in [0, ceil(W/H)):"
    )


def test_an_unrolled_store_is_told_once():
    assert loop_nest(loop("f.i", H, *[store("f")] * 8)) == "for i in [0, H):\n  f[...] = ..."


def test_hints_are_told():
    hinted = For("f.i", ZERO, H, SERIAL, store("f"), hints=(("stages", 3),))
    assert nest_line(hinted) == "for i in [0, H) stages=3: f"
