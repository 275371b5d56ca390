"""Arrays to try a pipeline on."""

import numpy as np
import pytest

from tensorlang import Func, Input, Pipeline, Size, Var, f32, u64
from tensorlang.testing.samples import random_array, sample_inputs

M, N = Size("M"), Size("N")
i = Var("i")


def shifted(by):
    a, out = Input("A", f32, [N]), Func("out")
    out[i] = a[i + by]
    return Pipeline("shifted", inputs=[a], outputs={out: [N - 2 * by]})


def test_samples_fit_the_shapes_and_are_the_same_every_time():
    arrays, sizes = sample_inputs(shifted(1), {})
    assert sizes == {"N": 13}
    assert arrays[0].shape == (13,)
    np.testing.assert_array_equal(arrays[0], sample_inputs(shifted(1), {})[0][0])


def test_sizes_grow_until_every_assert_holds():
    a, out = Input("A", f32, [N]), Func("out")
    out[i] = a[i + 40]
    pipeline = Pipeline("far", inputs=[a], outputs={out: [3]})
    assert sample_inputs(pipeline, {})[1] == {"N": 52}


def test_asserts_that_no_small_size_fulfils_ask_for_inputs():
    a, out = Input("A", f32, [4]), Func("out")
    out[i] = a[i + N]
    with pytest.raises(ValueError, match="pass inputs="):
        sample_inputs(Pipeline("never", inputs=[a], outputs={out: [4]}), {})


def test_special_values_are_among_random_ones():
    rng = np.random.default_rng(0)
    floats = random_array(rng, f32, (200,), special=True)
    assert np.isnan(floats).any()
    assert np.isinf(floats).any()
    assert np.isfinite(random_array(rng, f32, (200,), special=False)).all()
    assert random_array(rng, u64, (200,), special=True).max() == 2**64 - 1
