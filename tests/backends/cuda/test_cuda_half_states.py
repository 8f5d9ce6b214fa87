"""Float16 states in a CUDA program, checked with its kernels on the CPU: the reference's numbers."""

import pytest
from cuda_projects import opened
from half_projects import assert_same_as_the_reference
from nets import recurrent


@pytest.mark.wide
def test_records_and_gradients_equal_those_of_the_reference():
    assert_same_as_the_reference(opened, recurrent, ("states",), 1e-5)
