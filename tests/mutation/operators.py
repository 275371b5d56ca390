"""Mutation operators: small mistakes, made one at a time in the syntax tree of a module.

    a < b       ->  a <= b         off by one
    If(c, s)    ->  s              a mask or guard is lost
    x - y       ->  y - x          swapped operands
    raise e     ->  pass           a check is lost

Only code inside functions is changed: what runs at import has run when a mutant is put in.
Texts of errors are left alone; `raise` as a whole is not.
"""

import ast
import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass

Change = tuple[str, ast.AST]


@dataclass(frozen=True, slots=True)
class Mutant:
    """One mistake: `before` becomes `after` in a function of a module."""

    module: str
    function: str
    operator: str
    lines: tuple[int, int]
    before: str
    after: str
    ordinal: int

    @property
    def key(self) -> str:
        """A name that does not change when other lines of the module do."""
        number = f" #{self.ordinal}" if self.ordinal else ""
        change = f"{self.before} -> {self.after}"
        return f"{self.module}:{self.function}: {self.operator}: {change}{number}"


@dataclass(frozen=True, slots=True)
class _Site:
    """A place in the tree: the node stands in `field` of its parent, in a list at `index`."""

    parent: ast.AST
    field: str
    index: int | None
    made: ast.AST


# --- expressions ---------------------------------------------------------------------------------

_COMPARISONS: dict[type[ast.cmpop], tuple[str, type[ast.cmpop]]] = {
    ast.Lt: ("off by one", ast.LtE),
    ast.LtE: ("off by one", ast.Lt),
    ast.Gt: ("off by one", ast.GtE),
    ast.GtE: ("off by one", ast.Gt),
    ast.Eq: ("negated condition", ast.NotEq),
    ast.NotEq: ("negated condition", ast.Eq),
    ast.Is: ("negated condition", ast.IsNot),
    ast.IsNot: ("negated condition", ast.Is),
    ast.In: ("negated condition", ast.NotIn),
    ast.NotIn: ("negated condition", ast.In),
}
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.FloorDiv: ast.Mod,
    ast.Mod: ast.FloorDiv,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
_PAIRS = (
    *(("min", "max"), ("minimum", "maximum"), ("floor", "ceil"), ("any", "all"), ("lt", "le")),
    *(("and", "or"), ("eq", "ne"), ("floordiv", "mod"), ("argmin", "argmax"), ("first", "last")),
    *(
        ("low", "high"),
        ("add", "sub"),
        ("add", "mul"),
        ("outer", "inner"),
        ("prove_lt", "prove_le"),
    ),
)
_OTHER = {word: other for a, b in _PAIRS for word, other in ((b, a), (a, b))}
# Calls whose argument is what remains when the call is lost, by position.
_WRAPPERS = {"If": 1, "Let": 2, "Barrier": 0, "reversed": 0, "tuple": 0, "simplify": 0, "block": 0}
_SYMMETRIC = {"zip", "isinstance", "getattr", "setattr", "print", "map", "filter", "range", "max"}
_SYMMETRIC |= {"min", "gcd", "replace", "cast", "field", "Var", "Const", "Name", "_quoted"}


def _compare(node: ast.Compare) -> Iterator[Change]:
    if len(node.ops) == 1:
        operator, other = _COMPARISONS[type(node.ops[0])]
        yield operator, ast.Compare(node.left, [other()], node.comparators)


def _bool_op(node: ast.BoolOp) -> Iterator[Change]:
    other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
    yield "and or", ast.BoolOp(other, node.values)
    for k in range(len(node.values)):
        rest = [v for n, v in enumerate(node.values) if n != k]
        yield "dropped condition", rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest)


def _unary(node: ast.UnaryOp) -> Iterator[Change]:
    if isinstance(node.op, ast.Not):
        yield "negated condition", node.operand
    elif isinstance(node.op, ast.USub) and not isinstance(node.operand, ast.Constant):
        yield "lost sign", node.operand


def _binary(node: ast.BinOp) -> Iterator[Change]:
    if any(isinstance(e, (ast.JoinedStr, ast.Tuple, ast.List)) for e in (node.left, node.right)):
        return
    if any(isinstance(e, ast.Constant) and isinstance(e.value, str) for e in ast.walk(node)):
        return
    other = _ARITHMETIC.get(type(node.op))
    if other is not None:
        yield "another operator", ast.BinOp(node.left, other(), node.right)
    if isinstance(node.op, (ast.Sub, ast.FloorDiv, ast.Mod)):
        yield "swapped operands", ast.BinOp(node.right, node.op, node.left)
    if isinstance(node.op, (ast.Add, ast.Sub, ast.BitAnd, ast.BitOr)):
        yield "dropped operand", node.left


def _constant(node: ast.Constant) -> Iterator[Change]:
    if isinstance(node.value, bool):
        yield "flipped flag", ast.Constant(not node.value)
    elif isinstance(node.value, int):
        yield "off by one", ast.Constant(node.value + 1)
    elif isinstance(node.value, str) and node.value in _OTHER:
        yield "another word", ast.Constant(_OTHER[node.value])


def _name(node: ast.Name) -> Iterator[Change]:
    if isinstance(node.ctx, ast.Load) and node.id in _OTHER and node.id in ("min", "max"):
        yield "min max", ast.Name(_OTHER[node.id], ast.Load())
    elif isinstance(node.ctx, ast.Load) and node.id in ("any", "all", "prove_lt", "prove_le"):
        yield "another word", ast.Name(_OTHER[node.id], ast.Load())


def _if_else(node: ast.IfExp) -> Iterator[Change]:
    yield "dropped condition", node.body
    yield "dropped condition", node.orelse


def _call(node: ast.Call) -> Iterator[Change]:
    name = node.func.id if isinstance(node.func, ast.Name) else ""
    kept = _WRAPPERS.get(name)
    if kept is not None and len(node.args) > kept:
        what = "lost guard" if name == "If" else "lost call"
        if not isinstance(node.args[kept], (ast.GeneratorExp, ast.Starred)):
            yield what, node.args[kept]
    plain = not any(isinstance(a, ast.Starred) for a in node.args[:2])
    words = [a for a in node.args[:2] if isinstance(a, ast.Constant)]
    if len(node.args) >= 2 and plain and not words and name not in _SYMMETRIC:
        first, second, *rest = node.args
        yield "swapped arguments", ast.Call(node.func, [second, first, *rest], node.keywords)
    if name == "replace":
        for k in range(len(node.keywords)):
            rest = [w for n, w in enumerate(node.keywords) if n != k]
            yield "lost change", ast.Call(node.func, node.args, rest)


def _comprehension(node: ast.comprehension) -> Iterator[Change]:
    for k in range(len(node.ifs)):
        rest = [c for n, c in enumerate(node.ifs) if n != k]
        yield "dropped condition", ast.comprehension(node.target, node.iter, rest, node.is_async)


# --- statements ----------------------------------------------------------------------------------


def _if(node: ast.If) -> Iterator[Change]:
    never = ast.If(ast.Constant(False), node.body, node.orelse)
    if not isinstance(node.body[0], ast.Raise):  # losing a raise is an operator of its own
        yield "dropped condition", never
    yield "negated condition", ast.If(ast.UnaryOp(ast.Not(), node.test), node.body, node.orelse)


def _raise(node: ast.Raise) -> Iterator[Change]:
    yield "lost check", ast.Pass()


def _statement(node: ast.Expr) -> Iterator[Change]:
    if not isinstance(node.value, ast.Constant):
        yield "lost statement", ast.Pass()


def _assignment(node: ast.Assign) -> Iterator[Change]:
    if isinstance(node.targets[0], (ast.Attribute, ast.Subscript)):
        yield "lost statement", ast.Pass()


def _augmented(node: ast.AugAssign) -> Iterator[Change]:
    yield "lost statement", ast.Pass()


def _continue(node: ast.Continue) -> Iterator[Change]:
    yield "another jump", ast.Break()


def _break(node: ast.Break) -> Iterator[Change]:
    yield "another jump", ast.Continue()


def _case(node: ast.match_case) -> Iterator[Change]:
    yield "lost case", ast.match_case(node.pattern, ast.Constant(False), node.body)
    if node.guard is not None:
        yield "dropped condition", ast.match_case(node.pattern, None, node.body)


OPERATORS: dict[type[ast.AST], Callable[..., Iterator[Change]]] = {
    ast.Compare: _compare,
    ast.BoolOp: _bool_op,
    ast.UnaryOp: _unary,
    ast.BinOp: _binary,
    ast.Constant: _constant,
    ast.Name: _name,
    ast.IfExp: _if_else,
    ast.Call: _call,
    ast.comprehension: _comprehension,
    ast.If: _if,
    ast.Raise: _raise,
    ast.Expr: _statement,
    ast.Assign: _assignment,
    ast.AugAssign: _augmented,
    ast.Continue: _continue,
    ast.Break: _break,
    ast.match_case: _case,
}


# --- a module ------------------------------------------------------------------------------------

_UNTOUCHED = (ast.JoinedStr, ast.Assert)
_NOT_CODE = {"annotation", "returns", "decorator_list", "type_comment"}


def _is_text(node: ast.AST) -> bool:
    """Whether a call makes an error: its arguments are words for a reader."""
    if not isinstance(node, ast.Call):
        return False
    name = getattr(node.func, "attr", getattr(node.func, "id", ""))
    return name == "error" or name.endswith("Error")


def _walk(node: ast.AST, function: str, inside: bool) -> Iterator[tuple[str, _Site, str]]:
    """(function, site with the node replaced, operator) of everything inside functions."""
    for field, value in ast.iter_fields(node):
        if field in _NOT_CODE or (field == "args" and isinstance(value, ast.arguments)):
            continue
        children = value if isinstance(value, list) else [value]
        for k, child in enumerate(children):
            if not isinstance(child, ast.AST) or isinstance(child, _UNTOUCHED):
                continue
            index = k if isinstance(value, list) else None
            if inside:
                for operator, made in OPERATORS.get(type(child), lambda _: ())(child):
                    yield function, _Site(node, field, index, made), operator
            if _is_text(child):
                continue
            name, below = function, inside
            if isinstance(child, (ast.FunctionDef, ast.ClassDef)):
                name = f"{function}.{child.name}".lstrip(".")
                below = inside or isinstance(child, ast.FunctionDef)
            yield from _walk(child, name, below)


def _shown(node: ast.AST) -> str:
    """One line of source: of a statement only its head."""
    if isinstance(node, ast.match_case):
        guard = f" if {ast.unparse(node.guard)}" if node.guard is not None else ""
        return f"case {ast.unparse(node.pattern)}{guard}"
    if isinstance(node, ast.comprehension):
        return "for ... " + " ".join(f"if {ast.unparse(c)}" for c in node.ifs)
    if isinstance(node, ast.If):
        return f"if {ast.unparse(node.test)}"
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= 100 else text[:97] + "..."


def _lines(node: ast.AST) -> tuple[int, int]:
    """The first and last line of an expression, or of the head of a statement."""
    match node:
        case ast.match_case():
            head = node.pattern
        case ast.comprehension():
            head = node.ifs[0]
        case ast.If():
            head = node.test
        case _:
            head = node
    return head.lineno, head.end_lineno


class Mutants:
    """All the mutants of a module's source."""

    def __init__(self, module: str, source: str) -> None:
        self.original = ast.parse(source)
        self._sites: dict[str, _Site] = {}
        self.found: list[Mutant] = []
        seen: dict[str, int] = {}
        for function, site, operator in _walk(self.original, "", inside=False):
            old = self._node(site)
            shown = (_shown(old), _shown(site.made))
            same = f"{function} {operator} {shown}"
            ordinal = seen[same] = seen.get(same, -1) + 1
            mutant = Mutant(module, function, operator, _lines(old), *shown, ordinal)
            self._sites[mutant.key] = site
            self.found.append(mutant)

    def tree(self, key: str) -> ast.Module:
        """The module with that mistake."""
        site = self._sites[key]
        old = self._node(site)
        made = copy.deepcopy(site.made)
        if isinstance(made, (ast.expr, ast.stmt)):
            ast.copy_location(made, old)
        self._put(site, made)
        changed = copy.deepcopy(self.original)
        self._put(site, old)
        return ast.fix_missing_locations(changed)

    def _node(self, site: _Site) -> ast.AST:
        held = getattr(site.parent, site.field)
        return held if site.index is None else held[site.index]

    def _put(self, site: _Site, node: ast.AST) -> None:
        if site.index is None:
            setattr(site.parent, site.field, node)
        else:
            getattr(site.parent, site.field)[site.index] = node
