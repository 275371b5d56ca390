"""Put a mutant into the running process: its functions get the code of the mutated module.

Modules that imported a function before have the same function object, so nothing is imported again.
"""

import ast
import gc
import importlib
from collections import defaultdict
from collections.abc import Iterator
from types import CodeType, FunctionType

_Key = tuple[str, int]


def put_in(module: str, original: ast.Module, mutated: ast.Module) -> int:
    """Exchange the code of every live function of the module that the mistake is in; how many."""
    importlib.import_module(module)  # Nothing may have needed it yet.
    old, new = _codes(original, module), _codes(mutated, module)
    changed = 0
    for function in [f for f in gc.get_objects() if type(f) is FunctionType]:
        if function.__module__ != module:
            continue
        code = function.__code__
        # What stands inside a function that changed may be gone; it is not looked for.
        for before, after in zip(old[_key(code)], new[_key(code)], strict=False):
            # Two lambdas of one line differ by what they do.
            if before.co_code == code.co_code and before != after:
                function.__code__ = after
                changed += 1
                break
    return changed


def _key(code: CodeType) -> _Key:
    return code.co_qualname, code.co_firstlineno


def _codes(tree: ast.Module, module: str) -> dict[_Key, list[CodeType]]:
    found: dict[_Key, list[CodeType]] = defaultdict(list)
    for code in _below(compile(tree, module, "exec")):
        found[_key(code)].append(code)
    return found


def _below(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _below(constant)
