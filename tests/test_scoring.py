"""The published figures against the model's."""

import pytest

from cypresskit.cli.cmd_kernels import _shown
from cypresskit.scoring import judged, speed


def test_a_figure_says_by_how_much_it_may_be_off():
    steady = speed({"gflops": 1874.2, "steady": True, "error": 0.004})
    unsteady = speed({"gflops": 1874.2, "steady": False, "error": 0.031})
    assert [_shown(figure) for figure in (steady, unsteady)] == ["1874", "1874 ± 3 %"]
    assert unsteady / 2 == pytest.approx(937.1)
    row = {"id": "sgemm_tn", "quantity": "gflops_max", "simulated": unsteady, "ratio": 1.012}
    assert _shown(judged([row])[0]["simulated"]) == "1874 ± 3 %"
