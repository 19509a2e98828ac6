"""`cypresskit time` and `cypresskit card` from a shell's point of view."""

import json

import pytest

from cypresskit.cli import main


def said(capsys, *words: str) -> str:
    assert main(list(words)) == 0
    return capsys.readouterr().out


def test_time_prints_a_report_and_its_json(capsys, tmp_path):
    trace = tmp_path / "trace.json"
    text = said(capsys, "time", "dgemm_tn", "--n", "256", "--device", "HD5850", "--trace", str(trace))
    assert text.startswith("dgemm_tn 256 x 256 x 256 on HD 5850: ")
    assert json.loads(trace.read_text())["traceEvents"]
    row = json.loads(said(capsys, "time", "dgemm_tn", "--n", "256", "--m", "128", "--k", "64", "--json"))
    assert {"gflops", "clocks", "bound"} <= set(row)
    assert (row["m"], row["n"], row["k"]) == (128, 256, 64)


def test_card_prints_the_keys_that_others_read(capsys):
    card = json.loads(said(capsys, "card", "sgemm_tn", "--json"))
    keys = "gprs loop_bundles k_per_iteration slots4_pct slots5_pct wavefronts fetches nominal_gflops".split()
    assert set(keys) <= set(card)
    both = json.loads(said(capsys, "card", "sgemm_tn", "--llvm", "--json"))
    assert both["llvm"]["gprs"] > card["gprs"]
    assert "LLVM" in said(capsys, "card", "sgemm_tn", "--llvm")
    assert "MULADD_IEEE" in said(capsys, "card", "sgemm_tn", "--listing")
    assert len(json.loads(said(capsys, "card", "--all", "--json"))) == 8


def test_card_reads_a_file_of_ones_own(capsys, tmp_path):
    path = tmp_path / "mine.il"
    path.write_text("il_ps_2_0\nadd r0, vWinCoord0, vWinCoord0\nmov o0, r0\nend\n")
    assert "mine" in said(capsys, "card", str(path))


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["time", "sgemm", "--n", "64"], "no kernel 'sgemm'; the catalogue has"),
        (["time", "sgemm_tn", "--n", "0"], "whole numbers from 1 to"),
        (["time", "sgemm_tn", "--n", "64", "--device", "HD9999"], "is not one of"),
        (["card", "sgemm"], "no kernel 'sgemm', and no such file"),
        (["card", "sgem_tn"], "Did you mean `sgemm_tn`?"),
        (["card", "missing.il"], "can't read missing.il"),
        (["card"], "name a kernel or an IL file"),
    ],
)
def test_mistakes_are_told_in_a_line(words, expected, capsys):
    assert main(words) == 1
    error = capsys.readouterr().err
    assert expected in error
    assert "Traceback" not in error
