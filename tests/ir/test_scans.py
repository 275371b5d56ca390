"""Which updates are scans along a variable."""

from tensorlang import Func, Input, Pipeline, RDom, Size, Var, cummax, cumsum, f32, i64, select
from tensorlang.ir.scans import Scan, scan_along, scan_of

M, N = Size("M"), Size("N")
i, k, j = Var("i"), RDom("k", N), Var("j")
A = Input("A", f32, [M, N])


def found(f: Func, shape: tuple[Size, ...] = (M, N)) -> Scan | None:
    """What the last update of `f` is, along k."""
    f_out = Func("out")
    f_out[i, j] = f[i, j][0] if len(f.dtypes) > 1 else f[i, j]
    record = Pipeline("p", inputs=[A], outputs={f_out: shape}).algorithm.func(f.name)
    definition = record.definitions[-1]
    return scan_of(f.name, definition.indices, definition.values, "k")


def test_a_running_sum_begins_anew_at_its_first_point():
    f = Func("f")
    f[i, k] = cumsum(A[i, k], over=k)
    scan = found(f)
    assert scan is not None
    assert (scan.operator, scan.steps) == ("add", 1)
    assert scan.begins is not None


def test_an_update_that_reads_the_point_before_begins_from_what_is_there():
    f = Func("f")
    f[i, j] = 0.0
    f[i, k] = f[i, k - 1] * A[i, k]
    scan = found(f)
    assert scan is not None
    assert (scan.operator, scan.begins) == ("mul", None)


def test_a_scan_may_go_backwards():
    f = Func("f")
    f[i, j] = 0.0
    f[i, N - 1 - k] = f[i, N - k] + A[i, N - 1 - k]
    scan = found(f)
    assert scan is not None
    assert scan.steps == -1


def test_affine_maps_of_integers_are_a_scan_of_tuples():
    f, b = Func("f"), Input("B", i64, [M, N])
    f[i, j] = (b[i, j], b[i, j])
    f[i, k] = (f[i, k - 1][0] * b[i, k], f[i, k - 1][1] * b[i, k] + 1)
    out = Func("out")
    out[i, j] = f[i, j][1]
    record = Pipeline("p", inputs=[b], outputs={out: [M, N]}).algorithm.func("f")
    definition = record.definitions[-1]
    scan = scan_of("f", definition.indices, definition.values, "k")
    assert scan is not None
    assert len(scan.terms) == 2


def test_what_is_no_scan():
    steps = {
        "a recurrence of floats": lambda f: f[i, k - 1] * 0.5 + A[i, k],
        "two points before": lambda f: f[i, k - 2] + A[i, k],
        "its own element": lambda f: f[i, k] + A[i, k],
        "two elements": lambda f: f[i, k - 1] + f[i, k - 2],
        "another term at the first point": lambda f: select(
            k <= 0, A[i, k] * 2, f[i, k - 1] + A[i, k]
        ),
        "a term of the past": lambda f: f[i, k - 1] + A[i, k] * f[i, k - 1],
    }
    for name, step in steps.items():
        f = Func("f")
        f[i, j] = 0.0
        f[i, k] = step(f)
        assert found(f) is None, name


def test_a_scan_begins_anew_only_where_its_domain_begins():
    f = Func("f")
    f[i, k] = cummax(A[i, k], over=k)
    record = Pipeline("p", inputs=[A], outputs={f: [M, N]}).algorithm.func("f")
    definition = record.definitions[-1]
    assert definition.domain is not None
    first = definition.domain.dims[0][1]
    assert scan_along("f", definition.indices, definition.values, "k", first) is not None
    assert scan_along("f", definition.indices, definition.values, "k", first + 3) is None
