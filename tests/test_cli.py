"""The `cypresskit` command."""

import json
import os
import re
import subprocess
import sys
import urllib.request
from pathlib import Path

import numpy as np
import pytest
from conftest import ROOT, wait_for

from cypresskit import cli

SCALE = """il_ps_2_0
dcl_input_position_interp(linear_noperspective) vWinCoord0.xy__
dcl_resource_id(0)_type(2d,unnorm)_fmtx(float)_fmty(float)_fmtz(float)_fmtw(float)
dcl_cb cb0[1]
dcl_output_generic o0
sample_resource(0)_sampler(0) r0, vWinCoord0.xy00
mul o0, r0, cb0[0]
end
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("scale.il").write_text(SCALE)
    np.save("a.npy", np.arange(6 * 5 * 4, dtype=np.float32).reshape(6, 5, 4))
    np.save("k.npy", np.array([[2, 3, 4, 5]], np.float32))
    return tmp_path


RUN = ["run", "scale.il", "--domain", "5x6", "--input", "0=a.npy", "--constant", "0=k.npy", "--output", "0=c.npy"]


def test_run_writes_the_outputs(here, capsys):
    assert cli.main(RUN) == 0
    assert np.array_equal(np.load("c.npy"), np.load("a.npy") * [2, 3, 4, 5])
    assert re.search(r"^ +30  work-items$", capsys.readouterr().out, re.M)


def test_both_engines_write_the_same(here):
    assert cli.main(RUN) == 0
    fast = Path("c.npy").read_bytes()
    assert cli.main([*RUN, "--engine", "explain"]) == 0
    assert Path("c.npy").read_bytes() == fast


def test_an_output_that_exists_keeps_its_shape(here):
    np.save("c.npy", np.full((6, 5), 7, np.float32))
    assert cli.main(RUN) == 0
    assert np.array_equal(np.load("c.npy"), np.load("a.npy")[..., 0] * 2)


def test_global_memory_goes_to_its_file(here):
    Path("store.il").write_text(
        "il_cs_2_0\ndcl_num_thread_per_group 64\ndcl_literal l0, 2.0, 2.0, 2.0, 2.0\nmov g[vaTid0.x], l0\nend\n"
    )
    assert cli.main(["run", "store.il", "--domain", "64", "--global", "64=g.npy"]) == 0
    assert np.array_equal(np.load("g.npy"), np.full((64, 4), 2, np.float32))
    np.save("start.npy", np.arange(400, dtype=np.float32).reshape(100, 4))
    assert cli.main(["run", "store.il", "--domain", "64", "--global", "start.npy=g.npy"]) == 0
    assert np.array_equal(np.load("g.npy")[64:], np.load("start.npy")[64:])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"scale.il": "nowhere.il"}, "can't read nowhere.il"),
        ({"scale.il": "a.npy"}, "can't read a.npy"),
        ({"5x6": "5 by 6"}, "--domain 5 by 6: expected WIDTHxHEIGHT"),
        ({"5x6": "0x6"}, "--domain 0x6: expected WIDTHxHEIGHT"),
        ({"5x6": "²x6"}, "--domain ²x6: expected WIDTHxHEIGHT"),
        ({"5x6": "9999999x9999999"}, "memory is too small"),
        ({"0=a.npy": "²=a.npy"}, "--input ²=a.npy: expected NUMBER=FILE.npy"),
        ({"0=a.npy": "a.npy"}, "--input a.npy: expected NUMBER=FILE.npy"),
        ({"0=a.npy": "0=missing.npy"}, "can't read missing.npy as a .npy array: No such file"),
        ({"0=a.npy": "0=scale.il"}, "can't read scale.il as a .npy array: it isn't one"),
        ({"0=a.npy": "0=empty.npy"}, "can't read empty.npy as a .npy array: it isn't one"),
        ({"0=a.npy": "0=two.npz"}, "can't read two.npz as a .npy array: it isn't one"),
        ({"0=a.npy": "3=a.npy"}, "resource 0: pass --input 0=FILE.npy"),
        ({"0=c.npy": "0=no/such/c.npy"}, "can't write no/such/c.npy"),
    ],
)
def test_mistakes_are_told_in_words(here, capsys, change, said):
    Path("empty.npy").touch()
    np.savez("two.npz", one=np.zeros(3))
    assert cli.main([change.get(word, word) for word in RUN]) == 1
    error = capsys.readouterr().err
    assert error.startswith("cypresskit run: ") and said in error


def test_errors_in_the_kernel_are_told_with_their_line(here, capsys):
    Path("scale.il").write_text(SCALE.replace("mul o0", "mull o0"))
    assert cli.main(RUN) == 1
    error = capsys.readouterr().err
    assert "scale.il:7:1" in error and "mull o0, r0" in error
    assert not Path("c.npy").exists()


def test_a_number_given_twice_is_refused(here, capsys):
    assert cli.main([*RUN, "--input", "0=k.npy"]) == 1
    assert "was given before" in capsys.readouterr().err


@pytest.mark.parametrize("command", [[], ["lab"], ["run"], ["kernels"], ["bench"]])
def test_help_answers(command, capsys):
    with pytest.raises(SystemExit) as end:
        cli.main([*command, "--help"])
    assert end.value.code == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"usage: {' '.join(['cypresskit', *command])}")
    assert max(map(len, shown.splitlines())) <= 80


def test_help_of_the_whole_names_every_command(capsys):
    with pytest.raises(SystemExit):
        cli.main(["--help"])
    named = set(re.findall(r"^    (\w+) ", capsys.readouterr().out, re.M))
    assert named == {"lab", "run", "check", "fuzz", "pipeline", "kernels", "bench", "card", "time", "score"}


def test_unknown_options_are_refused_where_nothing_takes_them(capsys):
    with pytest.raises(SystemExit) as end:
        cli.main(["bench", "--fast"])
    assert end.value.code == 2
    assert "bench doesn't know --fast" in capsys.readouterr().err


def test_module_is_the_same_command():
    shown = subprocess.run([sys.executable, "-m", "cypresskit", "--version"], capture_output=True, text=True)
    assert re.fullmatch(r"cypresskit \d+\.\d+\.\d+\n", shown.stdout)


@pytest.mark.slow
def test_bench_reports_every_size():
    shown = subprocess.run([sys.executable, "-m", "cypresskit", "bench", "--json"], capture_output=True, text=True)
    assert shown.returncode == 0, shown.stderr
    result = json.loads(shown.stdout)
    assert result["threads"] == 1
    assert [row["n"] for row in result["sizes"]] == [256, 512, 1024]
    assert [row["kernel"] for row in result["others"]] == ["dgemm_tn", "ddgemm_tn_fma", "sgemm_64x64_lds"]
    for row in result["sizes"]:
        assert row["ratio"] == pytest.approx(row["cypresskit_gflops"] / row["numpy_gflops"], rel=0.01)
        assert row["first_call_s"] > 0


def test_lab_opens_the_first_lesson(tmp_path):
    """JupyterLab starts, and what it would open in the browser is the first lesson."""
    log = tmp_path / "log"
    command = [sys.executable, "-m", "cypresskit", "lab", "--no-browser", "--port=0", "--IdentityProvider.token="]
    with log.open("wb") as file:
        server = subprocess.Popen(
            command, cwd=tmp_path, env=os.environ | {"JUPYTER_RUNTIME_DIR": str(tmp_path)}, stdout=file, stderr=file
        )
    try:
        while not (started := re.search(r"(http://127\.0\.0\.1:\d+)(/lab\S*)\n", log.read_text())):
            assert server.poll() is None, log.read_text()
        first = min((ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb")).name
        assert started[2] == f"/lab/tree/{first}"
        wait_for(f"{started[1]}/api/status", server, log)
        with urllib.request.urlopen(f"{started[1]}/api/contents/{first}?content=0") as answer:
            assert json.load(answer)["name"] == first
    finally:
        server.terminate()
        server.wait(20)


def test_lab_without_lessons_says_where_to_get_them(here, monkeypatch, capsys):
    monkeypatch.setattr(cli, "__file__", str(here / "site-packages/cypresskit/cli.py"))
    assert cli.main(["lab"]) == 1
    error = capsys.readouterr().err
    assert "make lab" in error and str(here / "notebooks") in error
