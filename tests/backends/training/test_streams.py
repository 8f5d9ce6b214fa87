"""Training on a stream of batches equals training on the same arrays."""

import itertools

import numpy as np
import pytest

import snnc
from snnc.errors import SnncError

torch = pytest.importorskip("torch")

N, T, BATCH = 10, 5, 4


def network():
    net = snnc.Network()
    source = net.input(6, name="input")
    hidden = net.population(8, snnc.LIF(), name="hidden")
    readout = net.population(3, snnc.LI(), name="readout")
    net.connect(source, hidden, snnc.Dense(seed=1))
    net.connect(hidden, readout, snnc.Dense(seed=2))
    return net


@pytest.fixture
def session():
    with snnc.compile(network(), loss="ce_mean_membrane", optimizer="adam:0.01") as made:
        yield made


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    return (rng.random((N, T, 6)) < 0.4).astype(np.float32), rng.integers(0, 3, N)


def cut(x, y, size=BATCH):
    return [(x[at : at + size], y[at : at + size]) for at in range(0, len(x), size)]


class Renewed:
    """Gives its batches in every epoch, and does not say how many there are."""

    def __init__(self, batches):
        self.batches = batches

    def __iter__(self):
        yield from self.batches


def loader(x, y):
    set_ = torch.utils.data.TensorDataset(torch.from_numpy(x), torch.from_numpy(y))
    return torch.utils.data.DataLoader(set_, batch_size=BATCH)


SOURCES = {
    "list": cut,
    "tuple": lambda x, y: tuple(cut(x, y)),
    "iterable": lambda x, y: Renewed(cut(x, y)),
    "DataLoader": loader,
    "tensors that learn": lambda x, y: [(torch.tensor(a, requires_grad=True), torch.tensor(b)) for a, b in cut(x, y)],
    "inputs by name": lambda x, y: [({"input": a}, list(map(int, b))) for a, b in cut(x, y)],
    "events": lambda x, y: [(snnc.Events.from_dense(a), b) for a, b in cut(x, y)],
}


@pytest.mark.parametrize("source", SOURCES)
def test_batches_train_as_the_arrays_that_they_are_of(session, data, source):
    with snnc.compile(network(), loss="ce_mean_membrane", optimizer="adam:0.01") as other:
        wanted = other.fit(*data, batch=BATCH, epochs=3, shuffle=False, learning_rate=lambda epoch: 0.01 / (1 + epoch))
        weights = other.state_dict()
    seen = []
    found = session.fit(SOURCES[source](*data), epochs=3, learning_rate=lambda epoch: 0.01 / (1 + epoch), callback=seen.append)
    assert found.losses == wanted.losses
    assert found.batch_losses == wanted.batch_losses
    assert [(p.epoch, p.batch) for p in seen] == [(e, b) for e in range(3) for b in range(3)]
    assert all(1 <= p.batch + 1 <= p.batches <= 3 for p in seen)
    assert len(found.seconds) == 3
    for name, value in session.state_dict().items():
        np.testing.assert_array_equal(value, weights[name], err_msg=name)


def test_a_generator_trains_one_epoch_and_more_are_refused_before_anything_changes(session, data):
    before = session.state_dict()
    with pytest.raises(SnncError, match=r"SNNC-E570: epochs is 2, but a generator yields its batches once.*epochs=1"):
        session.fit((b for b in cut(*data)), epochs=2)
    assert all((before[name] == value).all() for name, value in session.state_dict().items())
    batches = iter(cut(*data))
    assert len(session.fit(batches).batch_losses[0]) == 3
    with pytest.raises(SnncError, match=r"SNNC-E570.*yielded no batch in epoch 1.*exhausted"):
        session.fit(batches)
    with pytest.raises(SnncError, match="SNNC-E570"):
        session.fit([])


class Once:
    """Looks as if it could be repeated, and cannot."""

    def __init__(self, batches):
        self.batches = iter(batches)

    def __iter__(self):
        yield from self.batches


def test_what_gives_nothing_in_a_later_epoch_is_refused_there(session, data):
    with pytest.raises(SnncError, match=r"SNNC-E570: the Once yielded no batch in epoch 2, after some"):
        session.fit(Once(cut(*data)), epochs=2)


@pytest.mark.parametrize(
    ("batches", "says"),
    [
        (lambda x, y: [(x, y), x], "SNNC-E570: batch 2 is a ndarray; a batch is a pair"),
        (lambda x, y: [(x, y, y)], "SNNC-E570: batch 1 is a tuple of 3 items"),
        (lambda x, y: iter([None]), "SNNC-E570: batch 1 is a NoneType"),
        (lambda x, y: [(x, y + 3)], "SNNC-E506"),
        (lambda x, y: [(x, y * 1.0)], "SNNC-E504"),
        (lambda x, y: [(x, y[:3])], "SNNC-E503"),
        (lambda x, y: [(x[:0], y[:0])], r"SNNC-E503.*no samples"),
        (lambda x, y: [(x + 0.5, y)], "SNNC-E507"),
        (lambda x, y: [(x[..., :2], y)], "SNNC-E503"),
        (lambda x, y: [({"lunch": x}, y)], "SNNC-E502"),
    ],
)
def test_a_batch_that_does_not_fit_is_refused_as_arrays_are(session, data, batches, says):
    with pytest.raises(SnncError, match=says):
        session.fit(batches(*data))


def test_what_contradicts_batches_is_refused(session, data):
    x, y = data
    for call, says in (
        (lambda: session.fit(loader(x, y), y), "SNNC-E571: y is given, but a DataLoader"),
        (lambda: session.fit(x), "SNNC-E571: y is missing"),
        (lambda: session.fit({"input": x}), "SNNC-E571: y is missing"),
        (lambda: session.fit(loader(x, y), batch=2), "SNNC-E519: batch is 2, but x already yields batches"),
        (lambda: session.fit(loader(x, y), epochs=1.5), "SNNC-E519"),
    ):
        with pytest.raises(SnncError, match=says):
            call()


def test_nested_lists_with_labels_are_samples(session, data):
    x, y = data
    found = session.fit(x.tolist(), y.tolist(), shuffle=False).losses
    with snnc.compile(network(), loss="ce_mean_membrane", optimizer="adam:0.01") as other:
        assert other.fit(x, y, shuffle=False).losses == pytest.approx(found, rel=1e-6)


def test_where_the_batch_is_compiled_in_the_last_smaller_one_is_left_out_and_said(session, data, monkeypatch):
    monkeypatch.setattr(session.engine, "batch", BATCH)
    x, y = data
    history = session.fit(cut(x, y), epochs=2)
    assert [len(losses) for losses in history.batch_losses] == [2, 2]
    assert history.dropped == 2
    assert "2 samples" in history.note
    for sizes, says in (
        ((4, 2, 4), r"batch 2 has 2 samples.*compiled for 4"),
        ((5, 4), "batch 1 has 5 samples"),
        ((2,), "only batch has 2"),
    ):
        starts = np.cumsum((0, *sizes))
        with pytest.raises(SnncError, match=says):
            session.fit([(x[a:b], y[a:b]) for a, b in itertools.pairwise(starts)])


def test_processes_that_train_together_need_data_that_they_can_share(session, data, monkeypatch):
    for name, value in {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "localhost", "MASTER_PORT": "1"}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SnncError, match=r"SNNC-E547.*DistributedDataParallel"):
        session.fit(cut(*data))
    assert session.fit(cut(*data), distributed=False).losses


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_numbers_that_are_not_finite_stop_it_and_the_last_good_ones_are_there(session, data):
    session.fit(cut(*data))
    before = session.state_dict()
    with pytest.raises(SnncError, match=r"SNNC-E535: training diverged.*epoch 2"):
        session.fit(cut(*data), first_epoch=1, learning_rate=lambda epoch: 1e38)
    assert all((before[name] == value).all() for name, value in session.state_dict().items())


def test_epochs_are_told_when_they_are_over(session, data):
    seen = []
    losses = session.fit(cut(*data), epochs=2, first_epoch=3, on_epoch=seen.append).losses
    assert [(e.number, e.until, e.loss) for e in seen] == [(3, 5, losses[0]), (4, 5, losses[1])]


def test_batches_train_in_parts_too(session, data):
    with snnc.compile(network(), loss="ce_mean_membrane", optimizer="adam:0.01") as other:
        wanted = other.fit(*data, batch=BATCH, shuffle=False, accumulate=2).losses
    assert session.fit(cut(*data), accumulate=2).losses == wanted
