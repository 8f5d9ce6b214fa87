"""Cross entropy at each step, averaged over the steps."""

import torch


def loss_of(record, labels):
    """Return the mean over the batch and the steps; record: [batch, steps, classes]."""
    batch, steps, classes = record.shape
    repeated = labels.unsqueeze(1).expand(batch, steps).reshape(batch * steps)
    return torch.nn.functional.cross_entropy(record.reshape(batch * steps, classes), repeated)


def scores_of(record):
    """Return [batch, classes] scores; the class with the largest score is the prediction."""
    return record.sum(1)
