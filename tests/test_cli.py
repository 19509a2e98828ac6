"""The `cypresskit` command."""

import json
import os
import re
import subprocess
import sys
import tracemalloc
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
        ({"5x6": "9999999x9999999"}, "--domain 9999999x9999999: at most 268,435,456 work-items"),
        ({"5x6": "9" * 5000}, "at most 268,435,456 work-items"),
        ({"5x6": "30"}, "--output 0=c.npy: output streams need --domain WIDTHxHEIGHT"),
        ({"0=a.npy": "0=claims.npy"}, "memory is too small: Unable to allocate 3.64 TiB"),
        ({"0=a.npy": "0=broken.npy"}, "can't read broken.npy as a .npy array: it isn't one"),
        ({"0=a.npy": f"{'9' * 5000}=a.npy"}, "expected NUMBER=FILE.npy"),
        ({"0=a.npy": "²=a.npy"}, "--input ²=a.npy: expected NUMBER=FILE.npy"),
        ({"0=a.npy": "a.npy"}, "--input a.npy: expected NUMBER=FILE.npy"),
        ({"0=a.npy": "0=missing.npy"}, "can't read missing.npy: No such file"),
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
    header = "{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000,)}\n"
    Path("claims.npy").write_bytes(b"\x93NUMPY\1\0" + len(header).to_bytes(2, "little") + header.encode())
    Path("broken.npy").write_bytes(b"\x93NUMPY\1\0\x20\0" + b"(" * 31 + b"\n")
    assert cli.main([change.get(word, word) for word in RUN]) == 1
    error = capsys.readouterr().err
    assert error.startswith("cypresskit run: ") and said in error


def rubbish() -> None:
    """Files that are no programs, each under a name for what it is."""
    Path("empty").touch()
    Path("binary").write_bytes(bytes(range(256)) * 20)
    Path("latin").write_bytes("il_ps_2_0\n; Größe\nend\n".encode("latin-1"))
    Path("utf16").write_text("il_ps_2_0\nend\n", encoding="utf-16")
    Path("long").write_text("il_ps_2_0\n" + "mov r0, r1\n" * 950_000 + "end\n")
    Path("folder").mkdir()
    with Path("longest").open("wb") as file:
        file.truncate(100_000_000)
    os.mkfifo("pipe")


@pytest.mark.parametrize(
    ("file", "said"),
    [
        ("empty", "empty:1:1: an empty kernel: the first line must be"),
        ("binary", "can't read binary: line 2 isn't text. Is it a program, saved as UTF-8?"),
        ("latin", "can't read latin: line 2 isn't text."),
        ("utf16", "can't read utf16: line 1 isn't text."),
        ("long", "can't read long: it is no program, which has at most 4,000,000 bytes"),
        ("longest", "can't read longest: it is no program"),
        ("folder", "can't read folder: Is a directory"),
        ("pipe", "can't read pipe: it is a pipe or a device, not a file"),
        ("/dev/zero", "can't read /dev/zero: it is a pipe or a device, not a file"),
        ("nowhere.il", "can't read nowhere.il: No such file or directory"),
    ],
)
@pytest.mark.parametrize("command", ["check", "card"])
def test_files_that_are_no_programs_are_told_in_a_line(here, capsys, command, file, said):
    rubbish()
    path = file if "/" in file else f"./{file}"
    options = ["--domain", "5x6"] if command == "check" else []
    tracemalloc.start()
    assert cli.main([command, path, *options]) == 1
    memory = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    error = capsys.readouterr().err
    assert error.startswith(f"cypresskit {command}: ") and said in error and error.count("\n") == 1
    assert memory < 30e6


def test_arrays_are_read_from_files_only(here, capsys):
    os.mkfifo("pipe")
    for change in ({"0=a.npy": "0=pipe"}, {"0=c.npy": "0=pipe"}, {"0=k.npy": "0=/dev/zero"}):
        assert cli.main([change.get(word, word) for word in RUN]) == 1
        assert "it is a pipe or a device" in capsys.readouterr().err


def test_global_memory_is_no_larger_than_the_cards(here, capsys):
    for count in ("67108865", "9" * 5000):
        assert cli.main([*RUN, "--global", f"{count}=g.npy"]) == 1
        assert "the card's memory holds 67,108,864 elements" in capsys.readouterr().err
    assert cli.main(["check", "scale.il", "--domain", "16384x16384", "--output", "0=new.npy"]) == 1
    assert "--output 0=new.npy: the card's memory holds 67,108,864 elements" in capsys.readouterr().err
    assert cli.main(["check", "scale.il", "--domain", "16384x16384", *RUN[4:-2]]) == 1
    assert "writes o0: pass --output 0=FILE.npy" in capsys.readouterr().err


CHECK = ["check", "scale.il", *RUN[2:]]


def test_several_programs_are_checked(here, capsys):
    Path("twice.il").write_text(SCALE.replace("mul o0, r0", "mul o0, r1"))
    Path("typo.il").write_text(SCALE.replace("mul o0", "mull o0"))
    assert cli.main([*CHECK, "scale.il"]) == 0
    assert capsys.readouterr().out == "scale.il: Nothing found.\n" * 2
    assert cli.main([*CHECK, "twice.il", "typo.il", "nowhere.il", "scale.il"]) == 1
    shown = capsys.readouterr()
    assert shown.out.startswith("scale.il: Nothing found.\ntwice.il:7:9: uninitialised: ")
    assert shown.out.endswith("\nscale.il: Nothing found.\n")
    assert "typo.il:7:1: `mull`" in shown.err and "can't read nowhere.il: No such file" in shown.err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--name", "foo"], "--name foo: expected PLACE=NAME, such as 0=A, with a place that was given (0, o0)"),
        (["--name", "5=A"], "--name 5=A: expected PLACE=NAME"),
        (["--name", "g=C"], "--name g=C: expected PLACE=NAME"),
        (["--name", "0="], "--name 0=: expected PLACE=NAME"),
        (["--name", "0=A", "--name", "0=B"], "--name 0=B: 0 was named before, A"),
        (["--domain", "5x7"], "outputs[0] is 6 x 5, the domain 7 x 5"),
    ],
)
def test_slips_in_the_options_of_check_are_told(here, capsys, options, said):
    np.save("c.npy", np.zeros((6, 5, 4), np.float32))
    assert cli.main([*CHECK, *options]) == 1
    assert said in capsys.readouterr().err


def test_findings_are_shown_on_terminals_of_few_letters(here):
    Path("scale.il").write_text(SCALE.replace("xy00", "xy00 ; Größe"), encoding="utf-8")
    command = [sys.executable, "-m", "cypresskit", *CHECK, "--max-fetches", "0"]
    shown = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"PYTHONIOENCODING": "ascii"})
    assert (shown.returncode, shown.stderr) == (1, "") and "; Gr\\xf6\\xdfe" in shown.stdout


@pytest.mark.parametrize("most", ["nan", "-1", "inf", "few"])
def test_budgets_are_numbers(here, capsys, most):
    with pytest.raises(SystemExit) as end:
        cli.main([*CHECK, "--max-fetches", most])
    assert end.value.code == 2
    assert f"'{most}' is no number of at least 0" in capsys.readouterr().err


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


def test_a_reader_that_has_seen_enough_ends_the_command_quietly():
    reads, writes = os.pipe()
    os.close(reads)
    command = [sys.executable, "-m", "cypresskit", "card", "sgemm_tn"]
    ended = subprocess.run(command, stdout=writes, stderr=subprocess.PIPE, text=True)
    os.close(writes)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_fuzz_says_how_many_programs_went_wrong(here, capsys, monkeypatch):
    assert cli.main(["fuzz", "--seconds", "0", "--seed", "3"]) == 0
    assert capsys.readouterr().out == "0 valid, 0 nearly valid, 1 random: 0 went wrong\n"
    monkeypatch.setattr("cypresskit.assemble", lambda text: 1 / 0)
    assert cli.main(["fuzz", "--seconds", "0", "--seed", "3"]) == 1
    shown = capsys.readouterr().out
    assert "again with `cypresskit fuzz --seconds 0 --seed 3`" in shown and shown.endswith(": 1 went wrong\n")


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
