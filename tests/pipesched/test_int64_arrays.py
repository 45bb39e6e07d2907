from __future__ import annotations

import numpy as np
import pytest

from pipesched.errors import OutOfRange
from pipesched.int64_arrays import LARGEST, int64_array, int64_sum


def test_numbers_within_the_range_are_kept() -> None:
    found = int64_array([[LARGEST, -LARGEST], [0, 1]])
    assert found.dtype == np.int64
    assert found.tolist() == [[LARGEST, -LARGEST], [0, 1]]
    assert int64_array([]).dtype == np.int64


@pytest.mark.parametrize("values", [[LARGEST + 1], [-LARGEST - 1], [2**63], [-(2**70)], [0, 10**30]])
def test_others_are_refused(values: list[int]) -> None:
    with pytest.raises(OutOfRange):
        int64_array(values)


def test_sums_are_of_the_range_whatever_their_signs() -> None:
    assert int64_sum([LARGEST // 2, -(LARGEST // 2)]) == 0
    with pytest.raises(OutOfRange):
        int64_sum([LARGEST, -1])
