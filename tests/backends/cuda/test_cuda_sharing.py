"""The division of samples and neurons among the blocks of a device, as predicted by the emitted program, compiled without its network."""

import json
import subprocess

import pytest
from cuda_projects import program_of

from snnc.backends.cuda.emit import emit_cuda
from snnc.backends.toolchain.compilers import compiler

PROGRAM = """
#include "share_out.hpp"
#include <cstdio>
int main() {
  // A network of 700 inputs, 256 recurrent neurons and a readout of 20.
  const snnc::Work work{1, 9, 249856, 0, 70656, 0, 276};
  for (int least : {1000, 8})
    for (int batch : {64, 1024}) {
      const auto near = [=](int blocks, bool) { return blocks >= least; };
      const snnc::Sharing found = snnc::share_out(work, batch, 132, 0, 0, true, near);
      std::printf("{\\"blocks\\": %d%s}\\n", found.blocks(), found.text().c_str());
    }
}
"""


@pytest.mark.wide
def test_teams_are_as_wide_as_weights_need_to_come_near_and_no_warp_goes_through_rows_for_nobody(tmp_path):
    folder = emit_cuda(program_of("recurrent"), tmp_path / "project")
    (folder / "sharing.cpp").write_text(PROGRAM)
    sources = [str(folder / name) for name in ("sharing.cpp", "feedback.cpp", "memory.cpp", "cuda_on_host.cpp")]
    subprocess.run([*compiler(), "-std=c++17", "-DSNNC_ON_HOST", *sources, "-o", str(tmp_path / "sharing")], check=True)
    lines = subprocess.run([str(tmp_path / "sharing")], check=True, capture_output=True, text=True).stdout.splitlines()
    few_far, many_far, few_near, many_near = map(json.loads, lines)
    # Out of L2 a barrier of a team costs more than it spares; a lone sample is read by itself, eight together.
    assert [(one["team_blocks"], one["team_samples"], one["tile"]) for one in (few_far, many_far)] == [(1, 1, 1), (1, 8, 8)]
    assert (few_near["team_blocks"], many_near["team_blocks"]) == (8, 8)
    for found, batch in ((few_far, 64), (many_far, 1024), (few_near, 64), (many_near, 1024)):
        assert found["teams"] * found["team_samples"] >= batch
        assert found["blocks"] == found["teams"] * found["team_blocks"] <= 132
