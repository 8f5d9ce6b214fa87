"""Requirements on every engine that keeps histories only between checkpoints."""

import numpy as np


def assert_checkpoints_change_the_order_of_sums_only(engine, inputs, labels, segments, tolerance):
    """Train in segments of these lengths (0: whole): losses and records are equal, gradients within `tolerance` of the largest."""
    found = []
    for segment in segments:
        engine.segment = segment
        loss = engine.train_batch(inputs, labels, 0.0)
        found.append((loss, engine.gradients(), engine.forward(inputs, {})))
    for loss, gradients, records in found[1:]:
        assert loss == found[0][0]
        for name, gradient in found[0][1].items():
            rtol = 1e-7 if tolerance else 0
            np.testing.assert_allclose(gradients[name], gradient, rtol, tolerance * np.abs(gradient).max(), err_msg=name)
        for name, record in found[0][2].items():
            np.testing.assert_array_equal(records[name], record, err_msg=name)
