"""ATen's operators as definitions, one family a file.

A definition takes a Builder, the node and the operator's arguments, and gives the Value of its
result: a new Func, or for a view the same elements at other indices.
"""

from typing import Any

from tensorlang.torch.compiler.building import Rule
from tensorlang.torch.compiler.definitions import (
    contractions,
    creation,
    gathers,
    joins,
    pointwise,
    reductions,
    views,
)

VIEWS: dict[Any, Rule] = views.RULES
CREATIONS: dict[Any, Rule] = creation.RULES
CONTRACTIONS: dict[Any, Rule] = contractions.RULES
POINTWISE: dict[Any, Rule] = pointwise.RULES
DEFINITIONS: dict[Any, Rule] = {
    **VIEWS,
    **CREATIONS,
    **CONTRACTIONS,
    **POINTWISE,
    **joins.RULES,
    **gathers.RULES,
    **reductions.RULES,
}
