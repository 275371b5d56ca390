"""Values are computed in an order in which few of them wait."""

from itertools import product

from tensorlang.backends.c.pressure import in_few_registers, most_waiting

Needs = dict[str, list[str]]


def sums_of_products(taps: int) -> Needs:
    """Sums of a*a, b*b and a*b over the same loads, one sum after another."""
    needs: Needs = {}
    for a, b in ("aa", "bb", "ab"):
        for k in range(taps):
            for load in (f"{a}{k}", f"{b}{k}"):
                needs.setdefault(load, [])
            before = [f"{a}{b}.{k - 1}"] if k else []
            needs[f"{a}{b}.{k}"] = [f"{a}{k}", f"{b}{k}", *before]
    needs["all"] = [f"{s}.{taps - 1}" for s in ("aa", "ab", "bb")]
    return needs


def always(_: str) -> bool:
    return True


def test_sums_over_the_same_loads_grow_together():
    needs = sums_of_products(9)
    assert most_waiting(list(needs), needs, always) > 16
    order = in_few_registers(needs, always, 16)
    assert order is not None
    assert most_waiting(order, needs, always) <= 6


def test_every_value_comes_once_and_after_what_it_needs():
    needs = sums_of_products(9)
    order = in_few_registers(needs, always, 4)
    assert order is not None
    assert sorted(order) == sorted(needs)
    at = {value: k for k, value in enumerate(order)}
    assert all(at[need] < at[value] for value, needed in needs.items() for need in needed)


def test_an_order_that_fits_stays():
    needs = sums_of_products(2)
    assert in_few_registers(needs, always, 16) is None


def test_what_takes_no_register_comes_just_before_its_first_use():
    needs = sums_of_products(9)
    offsets: Needs = {f"at{k}": [] for k in range(9)}
    for k, side in product(range(9), "ab"):
        needs[f"{side}{k}"] = [f"at{k}"]
    both = offsets | needs
    order = in_few_registers(both, lambda value: not value.startswith("at"), 16)
    assert order is not None
    assert all(order[order.index(f"at{k}") + 1] in (f"a{k}", f"b{k}") for k in range(9))
