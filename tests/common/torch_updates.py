"""Compare an engine's updates with those of torch.optim, from the same gradients."""

from fnmatch import fnmatchcase

import numpy as np
from frameworks import torch

from snnc.compiler.losses.optimizers import SGD, Adam, AdamW, Group, RMSprop

GROUPS = (Group("*.bias", weight_decay=0.0), Group("rec.*", lr=0.1), Group("*", lr=0.5))
OPTIMIZERS = {
    "sgd": SGD(0.05),
    "nesterov": SGD(0.05, 0.9, nesterov=True, weight_decay=0.1),
    "adam": Adam(1e-2, weight_decay=0.1),
    "adamw": AdamW(1e-2, weight_decay=0.3),
    "rmsprop": RMSprop(1e-2, weight_decay=0.1),
    "rmsprop momentum": RMSprop(1e-2, alpha=0.9, momentum=0.8),
    "rmsprop centered": RMSprop(1e-2, alpha=0.9, centered=True, epsilon=1e-3),
    "rmsprop all": RMSprop(1e-2, alpha=0.9, momentum=0.8, centered=True, epsilon=1e-3),
    "clip value": SGD(0.05, 0.9, clip_value=0.02),
    "clip norm": SGD(0.05, 0.9, clip_norm=0.05, weight_decay=0.1),
    "both clips": AdamW(1e-2, clip_value=0.02, clip_norm=0.05),
    "groups": AdamW(1e-2, weight_decay=0.3, groups=GROUPS),
    "l1 and bound": Adam(1e-2, l1=0.02, bound=0.25),
    "l1 of groups": SGD(
        0.05, 0.9, l1=0.1, clip_norm=0.05, groups=(Group("*.bias", l1=0.0, weight_decay=0.1), Group("rec.*", bound=0.1, lr=0.5))
    ),
    "groups of sgd": SGD(0.05, 0.9, groups=GROUPS),
}
"""Every option of an optimiser, each with a value that has an effect."""
UPDATES = 20
_PLAIN = {"name", "groups", "accumulate", "loss_scale", "clip_value", "clip_norm", "beta1", "beta2", "epsilon", "l1", "bound"}


def torch_optimizer(optimizer, named):
    """Return the same optimiser of torch, over tensors by label."""
    kinds = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam, "adamw": torch.optim.AdamW, "rmsprop": torch.optim.RMSprop}
    given = {name: value for name, value in vars(optimizer).items() if name not in _PLAIN}
    if hasattr(optimizer, "epsilon"):
        given["eps"] = optimizer.epsilon
    if hasattr(optimizer, "beta1"):
        given["betas"] = (optimizer.beta1, optimizer.beta2)
    groups = []
    for label, tensor in named.items():
        own = next((g for g in optimizer.groups if fnmatchcase(label, g.pattern)), Group("*"))
        decay = optimizer.weight_decay if own.weight_decay is None else own.weight_decay
        groups.append({"params": [tensor], "lr": optimizer.lr * own.lr, "weight_decay": decay})
    return kinds[optimizer.name](groups, **given)


def of_group(optimizer, label, name):
    """Return a setting of the group that contains a parameter."""
    own = next((getattr(g, name) for g in optimizer.groups if fnmatchcase(label, g.pattern)), None)
    return getattr(optimizer, name) if own is None else own


def largest_difference(engine, program, batches):
    """Train, and apply the engine's gradients with torch too; return the largest difference of a parameter over all updates.

    It is relative to the change of the parameters, so an update that does nothing does not pass.
    """
    optimizer = program.optimizer
    named = {program.parameters[op.parameter].label: op.parameter for op in program.update}
    start = engine.get_parameters()
    tensors = {label: torch.tensor(start[name]) for label, name in named.items()}
    theirs = torch_optimizer(optimizer, tensors)
    worst = 0.0
    for inputs, labels in batches:
        engine.train_batch(inputs, labels, optimizer.lr)
        gradients, found = engine.gradients(), engine.get_parameters()
        for label, name in named.items():
            tensors[label].grad = torch.tensor(gradients[name]).reshape(tensors[label].shape)
        if optimizer.clip_value is not None:
            torch.nn.utils.clip_grad_value_(tensors.values(), optimizer.clip_value)
        if optimizer.clip_norm is not None:
            torch.nn.utils.clip_grad_norm_(tensors.values(), optimizer.clip_norm)
        for label, tensor in tensors.items():
            tensor.grad += of_group(optimizer, label, "l1") * tensor.sign()
        theirs.step()
        for label, tensor in tensors.items():
            if (bound := of_group(optimizer, label, "bound")) is not None:
                tensor.clamp_(-bound, bound)
        worst = max(worst, *(float(np.abs(found[name] - tensors[label].numpy()).max()) for label, name in named.items()))
    moved = max(float(np.abs(found[name] - start[name]).max()) for name in named.values())
    assert moved > 1e-2, "the updates hardly change anything"
    return worst
