"""Layers of popnn and their gradients equal PyTorch's in double precision, for random shapes."""

import numpy as np
import pytest
from emulated_numbers import as_text, drawn, joined, results

torch = pytest.importorskip("torch")
functional = torch.nn.functional


def run(cases, scenario, inputs, *arguments):
    """Run a scenario on tensors; return its results."""
    return results(cases.run("layers", scenario, *arguments, stdin=as_text(inputs)))


def compare(found, expected, rtol=2e-5, atol=2e-5):
    assert set(found) == set(expected)
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], np.ravel(value.detach().numpy()), rtol=rtol, atol=atol, err_msg=name)


def tensors(arrays):
    return [torch.tensor(a, dtype=torch.float64, requires_grad=True) for a in arrays]


@pytest.mark.parametrize(("seed", "separate"), [*((seed, 0) for seed in range(5)), (1, 1), (2, 1)])
def test_lstm_and_its_gradients(cases, seed, separate):
    rng = np.random.default_rng(seed)
    steps, batch, size, out = (int(n) for n in rng.integers(1, 6, 4))
    full, last, relu = seed % 2, seed % 3 > 0, seed == 4
    order = rng.permutation(4)
    x, h0, c0 = drawn(rng, steps, batch, size), drawn(rng, batch, out), drawn(rng, batch, out)
    weights = drawn(rng, 4, size, out, scale=0.5), drawn(rng, 4, out, out, scale=0.5), drawn(rng, 4, out)
    dy = drawn(rng, *([steps] if full else []), batch, out)
    d_last = [drawn(rng, batch, out), drawn(rng, batch, out)] if last else []
    found = run(
        cases, "lstm", [x, h0, c0, *weights, dy, *d_last], steps, batch, size, out, int(full), int(last), separate, int(relu), *order, ";"
    )  # fmt: skip
    x, h0, c0, w, u, b = leaves = tensors([x, h0, c0, *weights])
    place = {unit: i for i, unit in enumerate(order)}
    activation = torch.relu if relu else torch.tanh
    h, c, outputs = h0, c0, []
    for now in x:
        forget, inp, candidate, output = (now @ w[place[g]] + h @ u[place[g]] + b[place[g]] for g in range(4))
        c = torch.sigmoid(forget) * c + torch.sigmoid(inp) * activation(candidate)
        h = torch.sigmoid(output) * activation(c)
        outputs.append(h)
    y = torch.stack(outputs) if full else h
    loss = (y * torch.tensor(dy)).sum()
    if last:
        loss = loss + (h * torch.tensor(d_last[0])).sum() + (c * torch.tensor(d_last[1])).sum()
    loss.backward()
    names = ("dx", "dh", "dc", "dW", "dU", "db")
    compare(found, {"y": y, "cell": c, **{n: leaf.grad for n, leaf in zip(names, leaves, strict=True)}})


@pytest.mark.parametrize("seed", range(4))
def test_a_recurrence_with_a_cell_of_the_program(cases, seed):
    rng = np.random.default_rng(seed)
    steps, batch, size = (int(n) for n in rng.integers(1, 6, 3))
    backwards = seed % 2
    x, interim = drawn(rng, steps, batch, size), drawn(rng, 2 * steps, batch, size)
    first = drawn(rng, 1, batch, size), drawn(rng, 1, batch, size)
    found = run(cases, "recurrence", [x, interim, *first], steps, batch, size, backwards, 1 + seed % steps)
    (total, scale), pairs = first, interim.reshape(steps, 2, batch, size)
    states, out, kept = np.zeros_like(x), np.zeros_like(pairs), np.zeros_like(x)
    for step in reversed(range(steps)) if backwards else range(steps):
        total = total * scale + x[step] + step
        scale = scale + pairs[step, 1]
        states[step], kept[step] = total[0], scale[0]
        out[step] = total[0], pairs[step, 0]
    expected = {"sum": total, "scale": scale, "states": states, "out": out, "kept": kept, "made": 3 * x}
    compare(found, {name: torch.tensor(value) for name, value in expected.items()})


@pytest.mark.parametrize(("seed", "separate"), [*((seed, 0) for seed in range(8)), (0, 1), (1, 1), (5, 1), (6, 1)])
def test_gru_and_its_gradients(cases, seed, separate):
    rng = np.random.default_rng(10 + seed)
    attends = seed >= 5
    steps, batch, size, out = (int(n) for n in rng.integers(1, 6, 4))
    full, after, order = seed % 2, seed in (1, 2, 4, 6), rng.permutation(3)
    x, h0 = drawn(rng, steps, batch, size), drawn(rng, batch, out)
    weights = drawn(rng, 3, size, out, scale=0.5), drawn(rng, 3, out, out, scale=0.5), drawn(rng, 3, *([2] if after else []), out)
    dy = drawn(rng, *([steps] if full else []), batch, out)
    attention = np.abs(drawn(rng, batch, steps)) if attends else np.zeros((batch, steps))
    inputs = [x, h0, *weights, *([attention] if attends else []), dy]
    found = run(cases, "gru", inputs, int(attends), separate, steps, batch, size, out, int(full), int(after), *order, ";")
    x, h0, w, u, b, a = leaves = tensors([x, h0, *weights, attention])
    reset, update, candidate = (list(order).index(g) for g in range(3))
    b_in, b_state = (b[:, 0], b[:, 1]) if after else (b, torch.zeros_like(b))
    h, outputs = h0, []
    for step, now in enumerate(x):
        r, z = (torch.sigmoid(now @ w[g] + b_in[g] + h @ u[g] + b_state[g]) for g in (reset, update))
        z = (1 - a[:, step, None]) * z
        state = r * (h @ u[candidate] + b_state[candidate]) if after else (r * h) @ u[candidate]
        h = z * h + (1 - z) * torch.tanh(now @ w[candidate] + b_in[candidate] + state)
        outputs.append(h)
    y = torch.stack(outputs) if full else h
    (y * torch.tensor(dy)).sum().backward()
    names = ("dx", "dh", "dW", "dU", "db", "da")[: 6 if attends else 5]
    compare(found, {"y": y, **{n: leaf.grad for n, leaf in zip(names, leaves, strict=False)}})


def labels_of(rng, classes, blank, lengths, most):
    """Return labels [batch, most] without the blank class; often two neighbours are equal."""
    others = [k for k in range(classes) if k != blank]
    return np.stack([rng.choice(others, most) for _ in lengths])


@pytest.mark.parametrize("seed", range(8))
def test_ctc_loss_and_its_gradient(cases, seed):
    rng = np.random.default_rng(40 + seed)
    steps, batch, classes = int(rng.integers(6, 12)), int(rng.integers(1, 8)), int(rng.integers(2, 6))
    blank, most = int(rng.integers(0, classes)), int(rng.integers(1, 4))
    logits, softmax, half = seed % 2 == 0, seed % 4 < 2, seed == 7
    lengths, label_lengths = rng.integers(2 * most, steps + 1, batch), rng.integers(0, most + 1, batch)
    labels = labels_of(rng, classes, blank, lengths, most)
    drawn_logits = drawn(rng, steps, batch, classes).astype(np.float16 if half else np.float32)
    leaf = torch.tensor(drawn_logits, dtype=torch.float64, requires_grad=True)
    given = torch.log_softmax(leaf, -1)
    data = leaf if logits else given
    if half:
        data = given = torch.tensor(given.detach().numpy().astype(np.float16).astype(np.float64), requires_grad=True)
    found = run(
        cases, "ctcLoss", [data.detach().numpy(), labels, lengths, label_lengths], int(half), steps, batch, classes, most, blank,
        int(logits), int(softmax), 0,
    )  # fmt: skip
    loss = functional.ctc_loss(
        given, torch.tensor(labels), torch.tensor(lengths), torch.tensor(label_lengths), blank=blank, reduction="none"
    )
    # Of the logarithms alone: the occupation of each class, which is what of the softmax's gradient the probabilities are not.
    occupied = given.exp().detach().numpy() - ctc_gradient(given.detach().numpy(), labels, lengths, label_lengths, blank)
    inside = (np.arange(steps)[:, None] < lengths)[:, :, None]
    expected = np.where(inside, (given.exp().detach().numpy() if softmax else 0) - occupied, 0)
    tolerance = 2e-3 if half else 2e-5
    for name in ("loss", "alone"):
        np.testing.assert_allclose(found[name], loss.detach().numpy(), rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(found["gradient"], expected.ravel(), rtol=tolerance, atol=tolerance)


def ctc_gradient(log_probabilities, labels, lengths, label_lengths, blank):
    """Return the gradient of the loss by what the softmax is given, by PyTorch."""
    leaf = torch.tensor(log_probabilities, requires_grad=True)
    given = torch.log_softmax(leaf, -1)
    functional.ctc_loss(
        given, torch.tensor(labels), torch.tensor(lengths), torch.tensor(label_lengths), blank=blank, reduction="sum"
    ).backward()
    inside = (np.arange(len(leaf))[:, None] < lengths)[:, :, None]
    return np.where(inside, leaf.grad.numpy(), np.exp(log_probabilities))


@pytest.mark.parametrize("zero", [0, 1])
def test_ctc_labels_that_do_not_fit_the_steps_have_an_infinite_loss(cases, zero):
    # Two equal labels need a blank between them, so three steps; the second sample has them.
    data = np.log(np.full((3, 2, 2), 0.5))
    inputs = [data, np.ones((2, 2)), np.array([2, 3]), np.array([2, 2])]
    found = run(cases, "ctcLoss", inputs, 0, 3, 2, 2, 2, 0, 0, 1, zero)
    assert found["loss"][0] == (0 if zero else np.inf)
    np.testing.assert_allclose(found["loss"][1], 3 * np.log(2), rtol=1e-6)
    gradient = np.reshape(found["gradient"], (3, 2, 2))
    assert (gradient[:2, 0] == 0).all() if zero else np.isnan(gradient[:2, 0]).all()
    np.testing.assert_allclose(gradient[:, 1], [[0.5, -0.5], [-0.5, 0.5], [0.5, -0.5]], rtol=1e-5)


def every_label(log_probabilities, blank):
    """Return the probability of every label sequence, from all paths."""
    steps, classes = log_probabilities.shape
    found = {}
    for path in np.ndindex(*[classes] * steps):
        merged = [k for i, k in enumerate(path) if i == 0 or path[i - 1] != k]
        labels = tuple(k for k in merged if k != blank)
        found[labels] = found.get(labels, 0.0) + float(np.exp(sum(log_probabilities[t, k] for t, k in enumerate(path))))
    return sorted(found.items(), key=lambda item: -item[1])


@pytest.mark.parametrize("seed", range(4))
def test_beam_search_with_room_for_all_finds_the_likeliest_labels(cases, seed):
    rng = np.random.default_rng(60 + seed)
    steps, batch, classes, paths = int(rng.integers(2, 6)), 2, int(rng.integers(2, 4)), int(rng.integers(1, 4))
    blank = int(rng.integers(0, classes))
    logits = drawn(rng, steps, batch, classes, scale=2.0)
    lengths = np.array([steps, steps - 1])
    found = run(cases, "beamSearch", [logits, lengths], steps, batch, classes, blank, 400, paths)
    costs, sizes = (np.reshape(found[name], (batch, paths)) for name in ("costs", "lengths"))
    labels = np.reshape(found["labels"], (batch, paths, steps)).astype(int)
    for i in range(batch):
        known = torch.log_softmax(torch.tensor(logits[: lengths[i], i], dtype=torch.float64), -1).numpy()
        expected = every_label(known, blank)
        for p in range(paths):
            if p >= len(expected):
                assert np.isinf(costs[i, p])
                continue
            # The softmax is computed in float; a likely path costs next to nothing.
            np.testing.assert_allclose(costs[i, p], -np.log(expected[p][1]), rtol=1e-5, atol=1e-6)
            size = int(sizes[i, p])
            assert tuple(labels[i, p, :size]) == expected[p][0]
            assert (labels[i, p, size:] == blank).all()


def pooled_by_hand(x, kind, kernel, stride, lower, upper):
    """Return the windows' maxima, averages of what is no padding, or sums; of nothing but padding, 0."""
    dims = len(kernel)
    padding = [n for low, high in zip(lower[::-1], upper[::-1], strict=True) for n in (low, high)]
    real = functional.pad(torch.ones_like(x), padding)
    x = functional.pad(x, padding)
    for d in range(dims):
        x, real = (t.unfold(2 + d, kernel[d], stride[d]) for t in (x, real))
    x, real = x.flatten(2 + dims), real.flatten(2 + dims)
    if kind == 0:
        most = torch.where(real > 0, x, torch.full_like(x, -torch.inf)).max(-1).values
        return torch.where(torch.isinf(most), torch.zeros_like(most), most), (x, real)
    return x.sum(-1) / (real.sum(-1).clamp(min=1) if kind == 1 else 1), (x, real)


@pytest.mark.parametrize("seed", range(12))
def test_pooling_and_its_gradient(cases, seed):
    rng = np.random.default_rng(20 + seed)
    kind, dims, half = seed % 3, 1 + seed % 2, seed % 4 == 3
    batch, channels = (int(n) for n in rng.integers(1, 4, 2))
    kernel, stride = rng.integers(1, 4, dims).tolist(), rng.integers(1, 4, dims).tolist()
    lower, upper = rng.integers(-1, 4, dims).tolist(), rng.integers(-1, 4, dims).tolist()
    field = [int(k + 2 + n) for k, n in zip(kernel, rng.integers(0, 5, dims), strict=True)]
    # Few values, so that some maxima are shared; halves hold them and their sums.
    x = rng.integers(-6, 7, (batch, channels, *field)).astype(np.float32) / 4
    leaf = torch.tensor(x, dtype=torch.float64, requires_grad=True)
    y, (windows, real) = pooled_by_hand(leaf, kind, kernel, stride, lower, upper)
    dy = rng.integers(-6, 7, y.shape).astype(np.float32) / 4
    scaled = seed % 2 == 0
    if kind == 0:
        # Every element that equals the maximum of a window gets its gradient, or its share.
        equal = ((windows == y[..., None]) & (real > 0)).to(torch.float64).detach()
        share = equal / equal.sum(-1, keepdim=True).clamp(min=1) if scaled else equal
        (windows * share * torch.tensor(dy)[..., None]).sum().backward()
    else:
        (y * torch.tensor(dy)).sum().backward()
    found = run(
        cases, "pooling", [x, dy], int(half), kind, batch, channels, int(scaled), *joined([field, kernel, stride, lower, upper])
    )  # fmt: skip
    compare(found, {"y": y, "dx": leaf.grad}, **({"rtol": 2e-3, "atol": 2e-3} if half else {}))


@pytest.mark.parametrize("seed", range(12))
def test_normalisations_and_their_gradients(cases, seed):
    rng = np.random.default_rng(40 + seed)
    kind, half = seed % 4, seed == 5
    unbiased, stable, strided = (bool(n) for n in rng.integers(0, 2, 3))
    groups = int(rng.integers(1, 4))
    batch, channels = int(rng.integers(2, 5)), groups * int(rng.integers(1, 4))
    shape = (batch, channels, *rng.integers(2, 5, 2 if kind == 3 else seed % 3))
    x, dy = drawn(rng, *shape) + np.float32(0.5), drawn(rng, *shape)
    gamma, beta = drawn(rng, channels), drawn(rng, channels)
    found = run(
        cases, "norms", [x, dy, gamma, beta], int(half), kind, groups, int(unbiased), int(stable), int(strided), *shape, ";"
    )  # fmt: skip
    x, gamma, beta = leaves = tensors([x, gamma, beta])
    groups = {0: 0, 1: groups, 2: 1, 3: channels}[kind]
    if kind == 0:
        parts = x.transpose(0, 1).flatten(1)
    elif kind == 1 and strided:
        parts = x.unflatten(1, (channels // groups, groups)).transpose(1, 2).reshape(batch * groups, -1)
    else:
        parts = x.reshape(batch * groups, -1)
    mean = parts.mean(1)
    n = parts.shape[1]
    deviation = torch.rsqrt(parts.var(1, unbiased=False) * (n / (n - 1) if unbiased and n > 1 else 1) + 0.01)
    whitened = (parts - mean[:, None]) * deviation[:, None]
    if kind == 0:
        whitened = whitened.reshape(channels, batch, *shape[2:]).transpose(0, 1)
    elif kind == 1 and strided:
        whitened = whitened.reshape(batch, groups, channels // groups, *shape[2:]).transpose(1, 2).reshape(shape)
    whitened = whitened.reshape(shape)
    channel = (1, channels, *(1 for _ in shape[2:]))
    y = whitened * gamma.reshape(channel) + beta.reshape(channel)
    (y * torch.tensor(dy)).sum().backward()
    # The library's gradient takes the variance over n, whatever the estimate.
    if unbiased:
        scaled = torch.tensor(dy) * gamma.detach().reshape(channel)
        x.grad = gradient_of_the_biased(scaled, whitened.detach(), deviation.detach(), kind, strided, groups)
    new = {name: (p - 0.5 * p.grad) for name, p in zip(("gamma", "beta"), leaves[1:], strict=True)}
    tolerance = {"rtol": 3e-2, "atol": 3e-2} if half else {"rtol": 1e-4, "atol": 1e-4}
    compare(found, {"mean": mean, "invStdDev": deviation, "y": y, "dx": x.grad, **new}, **tolerance)


def gradient_of_the_biased(scaled, whitened, deviation, kind, strided, groups):
    batch, channels = scaled.shape[:2]

    def parts(t):
        if kind == 0:
            return t.transpose(0, 1).flatten(1)
        if kind == 1 and strided:
            return t.unflatten(1, (channels // groups, groups)).transpose(1, 2).reshape(batch * groups, -1)
        return t.reshape(batch * groups, -1)

    g, w = parts(scaled), parts(whitened)
    d = deviation[:, None] * (g - g.mean(1, keepdim=True) - w * (g * w).mean(1, keepdim=True))
    if kind == 0:
        return d.reshape(channels, batch, *scaled.shape[2:]).transpose(0, 1)
    if kind == 1 and strided:
        return d.reshape(batch, groups, channels // groups, *scaled.shape[2:]).transpose(1, 2).reshape(scaled.shape)
    return d.reshape(scaled.shape)


REFUSALS = {
    "varTimeSteps": ["poplibs_error", "varTimeSteps"],
    "activation": ["poplibs_error", "SIGMOID, HARD_SIGMOID, TANH or RELU"],
    "kernel": ["poplibs_error", "dimension 0", "6 long", "kernel 7"],
    "groups": ["poplibs_error", "{2,5}", "2 groups"],
    "option": ["poplar::invalid_option", "groupNormColour"],
}


@pytest.mark.parametrize("name", REFUSALS)
def test_layers_refuse_what_they_do_not_honour(cases, name):
    text = cases.run("layers", name)
    for part in REFUSALS[name]:
        assert part in text
