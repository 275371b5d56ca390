"""An algorithm as text that parses back (`tensorlang.parse`) to the same record.

    algorithm = "algorithm" name "(" argument, ... ")" "->" output, ... "{" definition ... "}"
    argument  = name ":" dtype "[" index, ... "]"      an Input; new names in its shape are Sizes
              | name ":" "size"                        a Size that no shape of an Input has
              | name ":" dtype                         a Param
    output    = name "[" index, ... "]"                a Func, and its shape

    definition = name "[" index, ... "]" "=" value ["over" points] ["for" home]
    value      = expr | "(" expr, ... ")"              a tuple-valued Func
    points     = axes ["where" condition]
    axes       = axis | [name] "(" axis, ... ")"       the name of the domain, where it has its own
    axis       = name "in" "[" min "," end ")" | name "in" "[" min "," "+" extent ")"
    index      = expr                                  integer data is cast to an index

The first definition of a Func is pure; the others are updates, for which `+=` and its like stand as
in Python.  `over` names the domain of an update; "for home" says which Func a reduction was lifted
out of.  Lines and indentation mean nothing, and a comment runs from # to the end of its line.

Expressions are those of loop IR (`ir/printer.py`), and besides, as in Python: constants without a
dtype, operands of several dtypes, `minimum maximum clamp`, select of several conditions, and
reductions and scans, which as a whole right side are a pure definition and an update:

    C[i, j] = sum(A[i, k]*B[k, j], over=k in [0, K))
    D[i] = max(A[i, r_0, r_1], over=r(r_0 in [0, 3), r_1 in [0, 3)) where r_0 <= r_1, initial=0)
    E[i, k] = cumsum(A[i, k], over=k in [0, K))

A tuple-valued Func read without a component (`f[i].1`) gives component 0.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tensorlang import reductions
from tensorlang.algorithm import Algorithm, Definition, Domain, FuncRecord, exprs_of_definition
from tensorlang.domain import Reduction, RVar, Scan
from tensorlang.ir.expr import Binary, Const, Expr, Load, Select, Size, Var
from tensorlang.ir.expr_text import INFIX, print_bare, print_expr, print_index, print_name
from tensorlang.ir.functions import identity
from tensorlang.ir.types import accumulator, i64, index
from tensorlang.ir.walk import postorder, rewrite

_ZERO = Const(0, index)
_STEPS = {"add": "sum", "mul": "prod", "min": "min", "max": "max", "or": "any", "and": "all"}
_UPDATES = ("add", "sub", "mul", "and", "or", "xor")


def print_algorithm(algorithm: Algorithm) -> str:
    """The algorithm as text, one definition a line."""
    shapes = [e for a in algorithm.inputs for e in a.shape]
    implied = {e for e in postorder(*shapes) if isinstance(e, Size)}
    inputs = [f"{print_name(a.name)}: {a.dtype}{_box(a.shape)}" for a in algorithm.inputs]
    sizes = [f"{print_name(n.name)}: size" for n in algorithm.sizes if n not in implied]
    params = [f"{print_name(p.name)}: {p.dtype}" for p in algorithm.params]
    outputs = ", ".join(f"{print_name(name)}{_box(shape)}" for name, shape in algorithm.outputs)
    head = f"algorithm {print_name(algorithm.name)}({', '.join(inputs + sizes + params)})"
    body = [f"  {line}" for f in algorithm.funcs for line in _definitions(f)]
    return "\n".join([f"{head} -> {outputs} {{", *body, "}"])


def _box(indices: tuple[Expr, ...]) -> str:
    return f"[{', '.join(map(print_index, indices))}]"


def _definitions(func: FuncRecord) -> Iterator[str]:
    home = f" for {print_name(func.home)}" if func.home else ""
    first, *updates = func.definitions
    reduced = _reduction(func) or _scan(func)
    if reduced is not None:
        yield f"{print_name(func.name)}{_box(first.indices)} = {reduced}{home}"
        updates = updates[1:]
    else:
        yield _definition(func, first) + home
    for update in updates:
        yield _definition(func, update)


def _definition(func: FuncRecord, definition: Definition) -> str:
    at = f"{print_name(func.name)}{_box(definition.indices)}"
    over = f" over {_points(definition.domain)}" if definition.domain else ""
    match definition.values:
        case (Binary(op, Load() as old, e),) if op in _UPDATES and _is_at(old, func, definition):
            return f"{at} {INFIX[op][0].strip()}= {_beside(e)}{over}"
        case (value,):
            return f"{at} = {_value(value)}{over}"
        case values:
            return f"{at} = ({', '.join(map(_value, values))}){over}"


def _is_at(load: Load, func: FuncRecord, definition: Definition) -> bool:
    """Whether an update reads what it writes."""
    return load is Load(func.name, definition.indices, 0, func.dtypes[0])


def _value(e: Expr) -> str:
    return print_expr(e, told=True)


def _beside(e: Expr) -> str:
    """An expression whose dtype what stands beside it tells."""
    return print_bare(e) if isinstance(e, Const) else _value(e)


def _points(domain: Domain) -> str:
    axes = [
        f"{print_name(name)} in [{'0, ' if low is _ZERO else f'{print_index(low)}, +'}"
        f"{print_index(extent)})"
        for name, low, extent in domain.dims
    ]
    where = "" if domain.where is None else f" where {_value(domain.where)}"
    if len(axes) == 1 and domain.name == domain.names[0]:
        return axes[0] + where
    return f"{print_name(domain.name)}({', '.join(axes)}){where}"


def _reduction(func: FuncRecord) -> str | None:
    """`sum(e, over=k in [0, K))`, where that gives the first two definitions."""
    if len(func.definitions) < 2:
        return None
    first, update = func.definitions[:2]
    for op, body in _candidates(func, update):
        made = _reduced(op, body, first, update)
        if made is not None and _gives(made, func, first, update):
            return _text_of(made)
    return None


def _candidates(func: FuncRecord, update: Definition) -> Iterator[tuple[str, Expr]]:
    """What the update may be the step of, and the term."""
    if update.pure != func.dims or update.domain is None:
        return
    match update.values:
        case (Binary(op, Load() as old, body),) if op in _STEPS and _is_at(old, func, update):
            yield _STEPS[op], body
        # The index alone is the value of argmax; its pairs are a Func that was lifted out.
        case (Select(_, body, _), Select()) if func.home is not None:
            yield from (("argmin", body), ("argmax", body))
        case _:
            pass


def _reduced(op: str, body: Expr, first: Definition, update: Definition) -> Reduction | None:
    """The reduction of these definitions, if they are one."""
    if update.domain is None or (op in ("any", "all") and not body.dtype.is_bool):
        return None
    pairs = op in ("argmin", "argmax")
    implied = pairs or op in ("any", "all") or (op in ("min", "max") and update.needs_point)
    # The identity is implied by sum and prod, and what there is no other way to say.
    if op in ("sum", "prod"):
        implied = first.values[0] is identity("add" if op == "sum" else "mul", body.dtype)
    initial = None if implied else first.values[0]
    return Reduction(op, body, update.domain, initial, i64 if pairs else body.dtype)


def _gives(made: Reduction, func: FuncRecord, first: Definition, update: Definition) -> bool:
    """Whether the reduction, as a right side, gives these two definitions."""
    here = tuple(Load(func.name, first.indices, k, t) for k, t in enumerate(func.dtypes))
    step = (rewrite(e, _as_var) for e in reductions.step_of(made, here))
    right = (*reductions.start_of(made), *step)
    given = (*first.values, *update.values)
    # A first definition reads nothing of its own Func.
    points = replace(update, indices=(), values=(made.body,))
    itself = any(func.name in e.reads for e in exprs_of_definition(points))
    needs_point = made.initial is None and made.op in ("min", "max", "argmin", "argmax")
    return not itself and needs_point == update.needs_point and _are_same(right, given)


def _as_var(e: Expr) -> Expr:
    return Var(e.name) if isinstance(e, RVar) else e


def _scan(func: FuncRecord) -> str | None:
    """`cumsum(e, over=k in [0, K))`, where that gives the first two definitions."""
    if len(func.definitions) < 2:
        return None
    first, update = func.definitions[:2]
    match update.values:
        case (Select(_, body, Binary(op, Load() as before)),) if update.domain is not None:
            for word in (w for w, step in reductions.SCANS.items() if step == op):
                made = Scan(word, body, update.domain, body.dtype)
                if _gives_scan(made, before, first, update):
                    return _text_of(made)
            return None
        case _:
            return None


def _gives_scan(made: Scan, before: Load, first: Definition, update: Definition) -> bool:
    """Whether the scan, as a right side, gives these two definitions."""
    if len(made.domain.dims) != 1 or made.domain.where is not None:
        return False
    along = Var(made.domain.names[0])
    previous = tuple(along - 1 if e is along else e for e in first.indices)
    step = rewrite(reductions.step_of_scan(made, before), _as_var)
    return (
        along in set(first.indices)
        and before.buffer not in made.body.reads
        and _are_same(update.indices, first.indices)
        and _are_same(before.indices, previous)
        and _are_same((*first.values, *update.values), (reductions.first_of_scan(made), step))
    )


def _are_same(a: Sequence[Expr], b: Sequence[Expr]) -> bool:
    return len(a) == len(b) and all(x is y for x, y in zip(a, b, strict=True))


def _text_of(made: Reduction | Scan) -> str:
    words = [_value(made.body), f"over={_points(made.domain)}"]
    if isinstance(made, Reduction) and made.initial is not None:
        words.append(f"initial={_beside(made.initial)}")
    is_wide = accumulator(made.dtype) is made.dtype
    if made.op in ("sum", "prod", "cumsum", "cumprod") and not is_wide:
        words.append(f"dtype={made.dtype}")
    return f"{made.op}({', '.join(words)})"
