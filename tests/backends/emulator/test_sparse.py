"""Products of sparse and dense matrices equal NumPy's, for random shapes and blocks."""

import numpy as np
import pytest
from emulated_numbers import as_text, compare_arrays, drawn, joined, results


def run(cases, scenario, inputs, *arguments):
    """Run a scenario on tensors; return its results."""
    return results(cases.run("layers", scenario, *arguments, stdin=as_text(inputs)))


def drawn_blocks(rng, rows, columns, block, density):
    """Return rows and columns of blocks in any order, their values, and the dense matrix."""
    grid = [(r, c) for r in range(0, rows, block[0]) for c in range(0, columns, block[1])]
    chosen = rng.permutation(len(grid))[: int(np.ceil(density * len(grid)))]
    at = [grid[i] for i in chosen]
    values = drawn(rng, len(at), *block)
    dense = np.zeros((rows, columns), np.float32)
    for (r, c), v in zip(at, values, strict=True):
        dense[r : r + block[0], c : c + block[1]] = v
    return [r for r, _ in at], [c for _, c in at], values, dense


@pytest.mark.parametrize("seed", range(8))
def test_sparse_products_whose_places_are_data(cases, seed):
    rng = np.random.default_rng(60 + seed)
    block = [(1, 1), (2, 3), (4, 4), (1, 2)][seed % 4]
    m, k, n = (int(b * rng.integers(1, 5)) for b in (*block, 1))
    left, right, half = bool(seed & 1), bool(seed & 2), seed == 7
    spare, density = int(rng.integers(0, 3)), rng.choice([0.2, 0.6, 1.0])
    rows, columns, values, a = drawn_blocks(rng, m, k, block, density)
    spare = min(spare, (m // block[0]) * (k // block[1]) - len(rows))
    b, x, dy = drawn(rng, m if left else k, n), drawn(rng, n, k), drawn(rng, n, m)
    order = np.lexsort((columns, rows))
    gradient = dy.T @ x
    blocks = [gradient[rows[i] : rows[i] + block[0], columns[i] : columns[i] + block[1]] for i in order]
    found = run(
        cases, "sparseDynamic", [values, b.T if right else b, x, dy],
        int(half), m, k, n, spare, seed % 3, int(left), int(right), *block, *joined([rows, columns]),
    )  # fmt: skip
    expected = {
        "product": (a.T if left else a) @ b, "y": x @ a.T, "dx": dy @ a,
        "dW": np.append(np.ravel(blocks), np.zeros(spare * block[0] * block[1])), "rows": sorted(rows),
    }  # fmt: skip
    compare_arrays(found, expected, half)


@pytest.mark.parametrize("seed", range(8))
def test_sparse_products_whose_places_are_known(cases, seed):
    rng = np.random.default_rng(80 + seed)
    block = [(1, 1), (2, 3), (4, 4), (2, 1)][seed % 4]
    dense_first, left, right, half = bool(seed & 1), bool(seed & 2), bool(seed & 4), seed == 6
    rows, columns = (int(b * rng.integers(1, 5)) for b in block)
    n = int(rng.integers(1, 6))
    at, across, values, sparse = drawn_blocks(rng, rows, columns, block, rng.choice([0.3, 1.0]))
    m, k = (columns, rows) if dense_first else (rows, columns)
    if dense_first:
        other = sparse.T if right else sparse
        dense = drawn(rng, n, other.shape[0])
        sent, expected = dense.T if left else dense, dense @ other
    else:
        other = sparse.T if left else sparse
        dense = drawn(rng, other.shape[1], n)
        sent, expected = dense.T if right else dense, other @ dense
    found = run(
        cases, "sparseStatic", [values, sent],
        int(half), m, k, n, int(dense_first), int(left), int(right), *block, *joined([at, across]),
    )  # fmt: skip
    compare_arrays(found, {"product": expected}, half)


@pytest.mark.parametrize("seed", range(6))
def test_products_of_lists_of_blocks(cases, seed):
    rng = np.random.default_rng(100 + seed)
    block = rng.integers(1, 4, 3)
    size = block * rng.integers(1, 4, 3)
    groups, sparse_result, transposed = 1 + seed % 2, seed % 3 == 0, seed % 3 == 2
    (m, k, n), (bm, bk, bn) = size, block
    a = drawn(rng, groups, m, k)
    shape, inner = ((m, n), (bm, bn)) if sparse_result else ((n, k), (bn, bk)) if transposed else ((k, n), (bk, bn))
    mask = rng.integers(0, 2, (groups, shape[0] // inner[0], shape[1] // inner[1]))
    mask[0, 0, 0] = 1
    lists, products = [], []
    for g in range(groups):
        full = drawn(rng, *((k, n) if sparse_result else shape))
        kept = np.kron(mask[g], np.ones(inner))
        product = a[g] @ (full if sparse_result else (full * kept).T if transposed else full * kept)
        table = full if not sparse_result else product
        places = zip(*np.nonzero(mask[g]), strict=True)
        blocks = [table[r * inner[0] : (r + 1) * inner[0], c * inner[1] : (c + 1) * inner[1]] for r, c in places]
        lists += [full] if sparse_result else blocks
        products += blocks if sparse_result else [product]
    found = run(
        cases, "blockSparse", [a, *lists], *size, *block, groups, int(sparse_result), int(transposed), *mask.ravel(), ";"
    )  # fmt: skip
    compare_arrays(found, {"product": np.concatenate([np.ravel(p) for p in products])})


REFUSALS = {
    "room": ["poplibs_error", "2 values", "room for 1"],
    "overlap": ["poplibs_error", "two blocks at row 2, column 3"],
}


@pytest.mark.parametrize("name", REFUSALS)
def test_sparse_matrices_that_do_not_fit_are_refused(cases, name):
    text = cases.run("layers", name)
    for part in REFUSALS[name]:
        assert part in text
