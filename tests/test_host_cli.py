"""`cypresskit pipeline`, with kernels at 400 Gflop/s so that nothing is simulated but the host."""

import json
from itertools import pairwise

import pytest

from cypresskit import cli
from cypresskit.host import pipeline

SIZES = ["--m", "16384", "--n", "16384", "--k", "1536"]


@pytest.fixture(autouse=True)
def fixed_rate(monkeypatch):
    monkeypatch.setattr(pipeline, "kernel_rate", lambda *_: 400e9)


def run(capsys, *options: str, stages: str = "five-stage") -> str:
    assert cli.main(["pipeline", stages, *SIZES, *options]) == 0
    return capsys.readouterr().out


def test_json_has_rates_shares_and_what_binds(capsys):
    numbers = json.loads(run(capsys, "--board", "HD5970", "--json"))
    assert numbers["gflops"] * numbers["seconds"] == pytest.approx(2 * 16384**2 * 1536 / 1e9)
    assert numbers["bound"] == "chip 0" and set(numbers["busy"]) > {"host memory", "PCIe to card", "CPU", "chip 1"}
    assert 0.8 < numbers["busy"]["chip 0"] < 1


def test_text_names_what_binds_and_every_share(capsys):
    first, *shares = run(capsys, "--chips", "1", stages="four-stage").splitlines()
    assert first.endswith("bound by chip 0")
    assert len(shares) == 7 and all("%" in line for line in shares)


def test_the_cpu_takes_a_share(capsys):
    alone, static, adaptive = (
        json.loads(run(capsys, "--json", "--cpu", cpu))["gflops"] for cpu in ("0", "static", "adaptive")
    )
    assert alone < static <= adaptive


def test_trace_is_written(capsys, tmp_path):
    run(capsys, "--trace", str(tmp_path / "trace.json"))
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert {"load1", "load2", "mult1", "store1", "store2"} <= {event.get("cat") for event in events}
    rows = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    assert set(rows.values()) == {f"{what} {chip}" for what in ("chip", "DMA", "thread") for chip in (0, 1)}
    for row in rows:  # slices of a row follow one another: overlapping ones would be dropped by the viewer
        spans = [(e["ts"], e["ts"] + e["dur"]) for e in events if e["ph"] == "X" and e["tid"] == row]
        assert spans and all(before[1] <= after[0] + 1e-3 for before, after in pairwise(spans))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--board", "HD9"], "device 'HD9' is not one of"),
        (["--chips", "0"], "use_chips = 0 has to be a whole number"),
        (["--cpu", "much"], "--cpu much: expected a number from 0 to 1, static or adaptive"),
        (["--m", "0"], "m = 0 has to be a whole number"),
        (["--cpu", "nan"], "cpu_share = nan has to lie in 0 to 1"),
        (["--cpu", "2"], "cpu_share = 2.0 has to lie in 0 to 1"),
        (["--trace", "no/such/file"], "can't write no/such/file"),
        (["--k", "100000"], "try a smaller block"),
    ],
)
def test_mistakes_are_told_in_words(capsys, options, said):
    assert cli.main(["pipeline", "five-stage", *SIZES, *options]) == 1
    error = capsys.readouterr().err
    assert error.startswith("cypresskit pipeline: ") and said in error and "Traceback" not in error
