"""The `cypresskit` command."""

import argparse
import json
import os
import re
import subprocess
import sys
import urllib.request
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from conftest import ROOT, memory_below

import cypresskit
from cypresskit import cli
from cypresskit.cli import cmd_lab, files, launching
from cypresskit.host import pipeline
from cypresskit.machine.arguments import check_needs

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
CHECK = ["check", "scale.il", *RUN[2:]]
TIMED = ["time", "scale.il", "--domain", "5x6"]


def refused(capsys, words: list[str], status: int = 1) -> str:
    """What a command says that ends with ``status``: 2 where argparse refuses it."""
    if status == 2:
        with pytest.raises(SystemExit) as end:
            cli.main(words)
        assert end.value.code == 2
    else:
        assert cli.main(words) == status
    error = capsys.readouterr().err
    assert "Traceback" not in error and (status == 2 or error.startswith(f"cypresskit {words[0]}: "))
    return error


def said(capsys, *words: str) -> str:
    assert cli.main(list(words)) == 0
    return capsys.readouterr().out


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
        ({"0=c.npy": f"0={'c' * 300}.npy"}, "cc.npy: File name too long"),
        ({"0=a.npy": "0=pipe"}, "it is a pipe or a device"),
        ({"0=c.npy": "0=pipe"}, "can't read pipe: it is a pipe or a device"),
        ({"0=k.npy": "0=/dev/zero"}, "it is a pipe or a device"),
        ({"--constant": "--input"}, "was given before"),
    ],
)
def test_mistakes_are_told_in_words(here, capsys, change, said):
    os.mkfifo("pipe")
    Path("empty.npy").touch()
    np.savez("two.npz", one=np.zeros(3))
    header = "{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000,)}\n"
    Path("claims.npy").write_bytes(b"\x93NUMPY\1\0" + len(header).to_bytes(2, "little") + header.encode())
    Path("broken.npy").write_bytes(b"\x93NUMPY\1\0\x20\0" + b"(" * 31 + b"\n")
    assert said in refused(capsys, [change.get(word, word) for word in RUN])


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
    with memory_below(30e6):
        error = refused(capsys, [command, path, *options])
    assert said in error and error.count("\n") == 1


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


HUGE = "the card's memory holds 67,108,864 elements"
TOLD = [  # which command, with which other options, and what it says
    (CHECK, "--name foo", "--name foo: expected PLACE=NAME, such as 0=A, with a place that was given (0, o0)"),
    (CHECK, "--name 5=A", "--name 5=A: expected PLACE=NAME"),
    (CHECK, "--name g=C", "--name g=C: expected PLACE=NAME"),
    (CHECK, "--name 0=", "--name 0=: expected PLACE=NAME"),
    (CHECK, "--name 0=A --name 0=B", "--name 0=B: 0 was named before, A"),
    (CHECK, "--domain 5x7", "outputs[0] is 6 x 5, the domain 7 x 5"),
    *((CHECK, f"--max-fetches {most}", f"'{most}' is no number of at least 0") for most in ("nan", "-1", "inf", "few")),
    *((RUN, f"--global {count}=g.npy", HUGE) for count in ("67108865", "9" * 5000)),
    (CHECK[:2], "--domain 16384x16384 --output 0=new.npy", f"--output 0=new.npy: {HUGE}"),
    (CHECK[:2], f"--domain 16384x16384 {' '.join(RUN[4:-2])}", "writes o0: pass --output 0=FILE.npy"),
    (["time", "sgemm_tn"], "--n 128 --texture 0=8x8 --domain 8x8 --global 8",
     "sgemm_tn: a kernel of the catalogue has its own launch: leave out --domain, --texture, --global"),
    (TIMED, "--texture 0=5x6", "reads cb0: pass --constant 0=FILE.npy, or numbers: 0=64.0,1"),
    (TIMED, "--constant 0=1e40", "--constant 0=1e40: the number doesn't fit in 32 bits"),
    (TIMED, "--constant 0=4294967296", "=4294967296: the number doesn't fit"),
    (TIMED, "--n -8", "--n -8: sizes are whole numbers from 1 to 999,999,999"),
    (TIMED, "--k 8", "say --n too"),
    (TIMED, "--constant 0=1.0,2.0", "fetches from resource 0: pass --texture 0=WIDTHxHEIGHT"),
    (TIMED, "--constant 0=1.0 --texture 0=5", "--texture 0=5: expected WIDTHxHEIGHT"),
    (TIMED, "--constant 0=1.0 --texture 0=5x6x7", "in texels, such as 0=512x128, and behind it x4 or x8 where"),
    (TIMED, "--constant 0=1.0 --texture 0=5x0", "--texture 0=5x0: expected WIDTHxHEIGHT"),
    (TIMED, "--constant 0=1,x", "can't read 1,x"),
    (TIMED, "--global z=g.npy", "can't read z"),
    (TIMED, "--constant 0=1.0 --texture 0=5x6 --texture 5=8x8", "texture 5 was given: scale.il fetches from res"),
    (TIMED, "--constant 0=1.0 --texture 0=5x6 --global 5=x", "--global 5=x: scale.il uses no global memory"),
    (TIMED, "--constant 0=1.0 --texture 0=5x16385", "has 16385 rows of 5 texels: a texture of the HD 5870 has at most"),
]  # fmt: skip


@pytest.mark.parametrize(("command", "options", "told"), TOLD)
def test_slips_in_options_are_told_in_options(here, capsys, command, options, told):
    np.save("c.npy", np.zeros((6, 5, 4), np.float32))
    assert told in refused(capsys, [*command, *options.split()], 2 if "--max" in options else 1)


def test_findings_are_shown_on_terminals_of_few_letters(here):
    Path("scale.il").write_text(SCALE.replace("xy00", "xy00 ; Größe"), encoding="utf-8")
    command = [sys.executable, "-m", "cypresskit", *CHECK, "--max-fetches", "0"]
    shown = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"PYTHONIOENCODING": "ascii"})
    assert (shown.returncode, shown.stderr) == (1, "") and "; Gr\\xf6\\xdfe" in shown.stdout


def test_errors_in_the_kernel_are_told_with_their_line(here, capsys):
    Path("scale.il").write_text(SCALE.replace("mul o0", "mull o0"))
    error = refused(capsys, RUN)
    assert "scale.il:7:1" in error and "mull o0, r0" in error
    assert not Path("c.npy").exists()


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
    assert named == {"lab", "run", "check", "pipeline", "kernels", "bench", "card", "il", "time", "score", "contest"}


def test_unknown_options_are_refused_where_nothing_takes_them(capsys):
    assert "bench doesn't know --fast" in refused(capsys, ["bench", "--fast"], 2)


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


@pytest.mark.parametrize("output", ["closed", "full"])
def test_output_that_nobody_takes_ends_the_command_with_a_line(output):
    command = f"{sys.executable} -m cypresskit card sgemm_tn {'>&-' if output == 'closed' else '>/dev/full'}"
    ended = subprocess.run(command, shell=True, capture_output=True, text=True)
    assert ended.returncode == 1
    assert re.fullmatch(r"cypresskit card: .*standard output.*\n", ended.stderr)


def test_names_of_files_cannot_steer_the_terminal(here, capsys):
    error = refused(capsys, ["card", "./\x1b[2Jevil.il"])
    assert "\x1b" not in error and r"can't read \x1b[2Jevil.il: No such file" in error


TWO = SCALE.replace("o0\n", "o0\ndcl_output_generic o1\n", 1).replace("end", "mov o1, r0\nend")


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--output", "1=c.npy"], "c.npy and c.npy are one file: of two results one would be lost"),
        (["--output", "1=./link.npy"], "c.npy and link.npy are one file"),
        (["--output", "1=no/d.npy"], "can't write no/d.npy: there is no folder"),
        (["--output", "1=locked/d.npy"], "can't write locked/d.npy: no permission"),
        (["--output", "1=d.npy", "--output", "2=e.npy"], "--output 2=e.npy: scale.il writes o0, o1"),
    ],
)
def test_targets_are_checked_before_the_run(here, capsys, monkeypatch, more, said):
    Path("scale.il").write_text(TWO)
    Path("link.npy").symlink_to("c.npy")
    Path("locked").mkdir()
    allowed = os.access  # root may write anywhere
    monkeypatch.setattr(os, "access", lambda path, mode: "locked" not in str(path) and allowed(path, mode))
    monkeypatch.setattr("cypresskit.launch", lambda *_, **__: pytest.fail("the program has run"))
    assert said in refused(capsys, [*RUN, *more])


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_full_disk_or_an_interrupt_leaves_older_files_as_they_were(here, capsys, monkeypatch, error):
    Path("scale.il").write_text(TWO)
    np.save("c.npy", np.full((6, 5), 7, np.float32))
    writers = []

    def failing(array):
        writers.append(array)
        if len(writers) == 1:
            return files_array_writer(array)

        def write(path):
            path.write_bytes(b"half of it")
            raise error

        return write

    files_array_writer = files.array_writer
    monkeypatch.setattr("cypresskit.cli.cmd_run.array_writer", failing)
    status = cli.main([*RUN, "--output", "1=d.npy"])
    assert status == (1 if isinstance(error, OSError) else 130)
    assert isinstance(error, KeyboardInterrupt) or "can't write d.npy: No space left" in capsys.readouterr().err
    assert (np.load("c.npy") == 7).all()
    assert sorted(path.name for path in Path().glob("[!aks]*")) == ["c.npy"]


def test_a_link_is_followed_and_a_mode_kept(here):
    np.save("real.npy", np.zeros((6, 5, 4), np.float32))
    os.chmod("real.npy", 0o640)
    Path("c.npy").symlink_to("real.npy")
    assert cli.main(RUN) == 0
    assert Path("c.npy").is_symlink() and np.load("real.npy").any()
    assert Path("real.npy").stat().st_mode & 0o777 == 0o640


QUICK = "from cypresskit import cli; from cypresskit.cli import cmd_bench; cmd_bench.LONG = 0; cli.main("


@pytest.mark.slow
def test_bench_reports_every_size(monkeypatch, capfd):
    """With the fewest runs of each row, three."""
    start = subprocess.run

    def quicker(command, **more):
        assert command[1:3] == ["-m", "cypresskit"]
        return start([command[0], "-c", f"{QUICK}{command[3:]!r})"], **more)

    monkeypatch.setattr(subprocess, "run", quicker)
    result = json.loads(said(capfd, "bench", "--json"))
    assert result["threads"] == 1
    assert [row["n"] for row in result["sizes"]] == [64, 128, 256, 512, 1024, 2048]
    assert {"dgemm_tn", "ddgemm_tn_fma", "sgemm_64x64_lds"} <= {row["kernel"] for row in result["others"]}
    assert {"fast", "explain"} == {row["engine"] for row in result["others"]}
    for row in result["sizes"] + result["all_threads"]:
        if row["kernel"] == "ddgemm_tn_fma":  # numpy has no double-double
            continue
        assert row["ratio"] == pytest.approx(row["cypresskit_gflops"] / row["numpy_gflops"], rel=0.01, abs=0.001)
        assert row["spread"][0] <= row["cypresskit_gflops"] <= row["spread"][1] and row["first_call_s"] > 0


def test_lab_opens_the_first_lesson(lab):
    """JupyterLab starts, and what it would open in the browser is the first lesson."""
    first = min((ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb")).name
    assert lab.opens == f"/lab/tree/{first}"
    with urllib.request.urlopen(f"{lab.url}/api/contents/{first}?content=0") as answer:
        assert json.load(answer)["name"] == first


def test_lab_without_lessons_says_where_to_get_them(here, monkeypatch, capsys):
    monkeypatch.setattr(cmd_lab, "CHECKOUT", here / "site-packages/notebooks")
    monkeypatch.setattr(cmd_lab, "INSTALLED", here / "site-packages/cypresskit/lessons")
    error = refused(capsys, ["lab"])
    assert "make lab" in error and str(here / "notebooks") in error


def test_installed_lessons_are_copied_and_never_over_work(here, monkeypatch):
    from jupyterlab.labapp import LabApp

    started = []
    monkeypatch.setattr(LabApp, "launch_instance", started.append)
    monkeypatch.setattr(cmd_lab, "CHECKOUT", here / "nowhere")
    monkeypatch.setattr(cmd_lab, "INSTALLED", ROOT / "notebooks")
    for _ in range(2):
        assert cli.main(["lab", "--no-browser"]) == 0
        Path("cypresskit-lessons/00_start_here.ipynb").write_text("my work")
    assert {f"--ServerApp.root_dir={here}/cypresskit-lessons", "--no-browser"} < set(started[0])
    copied = {path.name for path in Path("cypresskit-lessons").iterdir()}
    assert copied == {path.name for path in (ROOT / "notebooks").glob("*.ipynb")} and len(copied) == 13
    assert Path("cypresskit-lessons/00_start_here.ipynb").read_text() == "my work"


# -- time, card --------------------------------------------------------------------------------------------------------


def test_time_prints_a_report_and_its_json(capsys, tmp_path):
    trace = tmp_path / "trace.json"
    text = said(capsys, "time", "dgemm_tn", "--n", "256", "--device", "HD5850", "--trace", str(trace))
    assert text.startswith("dgemm_tn 256 x 256 x 256 on HD 5850: ")
    assert json.loads(trace.read_text())["traceEvents"]
    row = json.loads(said(capsys, "time", "dgemm_tn", "--n", "256", "--m", "128", "--k", "64", "--json"))
    assert {"gflops", "clocks", "bound"} <= set(row)
    assert (row["m"], row["n"], row["k"]) == (128, 256, 64)


def test_a_file_is_timed_by_arrays_or_by_shapes_alone(here, capsys):
    arrays = said(capsys, *TIMED, *RUN[4:], "--json", "--style", "best")
    assert not Path("c.npy").exists()
    shapes = said(capsys, *TIMED, "--texture", "0=5x6", "--constant", "0=2.0,3,4,5", "--json", "--style", "best")
    assert json.loads(arrays) == json.loads(shapes) and json.loads(shapes)["wavefronts"] == 1
    kernel = cypresskit.kernels["sgemm_tn"]
    Path("mine.il").write_text(kernel.text)
    size = (
        "--texture 0=32x128 --texture 1=32x128 --constant 0=1.0,0.0,128.0,32,0,0,0,0,0,0,0,0,0,0,0,0,0,16,16,0".split()
    )
    mine = said(capsys, "time", "mine.il", "--domain", "16x16", *size, "--global", "16K", "--n", "128", "--json")
    theirs = json.loads(said(capsys, "time", "sgemm_tn", "--n", "128", "--json"))
    mine = json.loads(mine)
    assert set(mine.pop("fetch_order")) == {"clauses", "alone", "clocks", "together", "moves"}
    assert mine == theirs | {"kernel": "mine.il", "m": 0, "n": 0, "k": 0}


def test_constants_are_numbers_in_every_spelling():
    words = "1e3,.5,-1E-3,inf,-nan,7,-1,4294967295,+2.0"
    got = launching._constants(argparse.Namespace(constant=[f"3={words}"]))[3]
    floats = np.array([1e3, 0.5, -1e-3, np.inf, -np.nan, 0, 0, 0, 2], np.float32).view(np.uint32)
    assert got.tolist() == [*floats[:5], 7, 2**32 - 1, 2**32 - 1, floats[8]]


def test_the_help_of_time_promises_no_file(capsys):
    with pytest.raises(SystemExit):
        cli.main(["time", "--help"])
    told = " ".join(capsys.readouterr().out.split())
    assert "where output" not in told and "where global" not in told and told.count("nothing is written") == 2


def test_a_launch_without_arrays_says_what_it_lacks():
    program = cypresskit.kernels["sgemm_tn"].program
    with pytest.raises(ValueError, match=r"pass launch=ck\.Shape\(program, domain, textures, constants\)"):
        cypresskit.simulate(program)
    with pytest.raises(ValueError, match=r"reads cb0: pass constants=\{0: array\}"):
        cypresskit.Shape(program, (16, 16))
    for order in (["inputs", "outputs", "constants"], ["constants", "inputs", "outputs"]):
        with pytest.raises(ValueError, match=r"reads cb0: pass constants=\{0: array\}"):
            check_needs(program, dict.fromkeys(order))
    for name in ("textures", "outputs"):
        half = {"textures": dict.fromkeys(range(2), (32, 128)), "constants": {0: [0.0] * 20}, "outputs": {}}
        half[name] = half[name] | {1: np.zeros((8, 8, 4), np.float16)}
        with pytest.raises(TypeError, match=rf"^{name}\[1\] has dtype float16"):
            cypresskit.Shape(program, (16, 16), **half)
    array = np.zeros((128, 32, 4), np.float32)
    shape = cypresskit.Shape(program, (16, 16), {0: (32, 128), 1: array}, {0: np.zeros((5, 4), np.float32)})
    assert shape.textures[0] == shape.textures[1]


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


# -- pipeline, with kernels at 400 Gflop/s so that nothing is simulated but the host -----------------------------------

SIZES = ["--m", "16384", "--n", "16384", "--k", "1536"]


def pipelined(capsys, *options: str, stages: str = "five-stage") -> str:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pipeline, "kernel_rate", lambda *_: 400e9)
        return said(capsys, "pipeline", stages, *SIZES, *options)


def test_json_has_rates_shares_and_what_binds(capsys):
    numbers = json.loads(pipelined(capsys, "--board", "HD5970", "--json"))
    assert numbers["gflops"] * numbers["seconds"] == pytest.approx(2 * 16384**2 * 1536 / 1e9)
    assert numbers["bound"] == "chip 0" and set(numbers["busy"]) > {"host memory", "PCIe to card", "CPU", "chip 1"}
    assert 0.8 < numbers["busy"]["chip 0"] < 1


def test_text_names_what_binds_and_every_share(capsys):
    first, *shares = pipelined(capsys, "--chips", "1", stages="four-stage").splitlines()
    assert first.endswith("bound by chip 0")
    assert len(shares) == 7 and all("%" in line for line in shares)


def test_the_cpu_takes_a_share(capsys):
    alone, static, adaptive = (
        json.loads(pipelined(capsys, "--json", "--cpu", cpu))["gflops"] for cpu in ("0", "static", "adaptive")
    )
    assert alone < static <= adaptive


def test_trace_is_written(capsys, tmp_path):
    pipelined(capsys, "--trace", str(tmp_path / "trace.json"))
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert {"load1", "load2", "mult1", "store1", "store2"} <= {event.get("cat") for event in events}
    rows = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    assert set(rows.values()) == {f"{what} {chip}" for what in ("chip", "DMA", "thread") for chip in (0, 1)}
    for row in rows:  # slices of a row follow one another: overlapping ones would be dropped by the viewer
        spans = [(e["ts"], e["ts"] + e["dur"]) for e in events if e["ph"] == "X" and e["tid"] == row]
        assert spans and all(before[1] <= after[0] + 1e-3 for before, after in pairwise(spans))


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("time sgemm --n 64", "no kernel 'sgemm'; the catalogue has"),
        ("time sgemm_tn --n 0", "whole numbers from 1 to"),
        ("time sgemm_tn --n 64 --device HD9999", "is not one of"),
        ("card sgemm", "no kernel 'sgemm', and no such file"),
        ("card sgem_tn", "Did you mean `sgemm_tn`?"),
        ("card missing.il", "can't read missing.il"),
        ("card", "name a kernel or an IL file"),
        ("pipeline five-stage --m 9 --n 9 --k 9 --board HD9", "device 'HD9' is not one of"),
        ("pipeline five-stage --m 9 --n 9 --k 9 --chips 0", "use_chips = 0 has to be a whole number"),
        ("pipeline five-stage --m 9 --n 9 --k 9 --cpu much", "--cpu much: expected a number from 0 to 1, static or ad"),
        ("pipeline five-stage --m 0 --n 9 --k 9", "m = 0 has to be a whole number"),
        ("pipeline five-stage --m 9 --n 9 --k 9 --cpu nan", "cpu_share = nan has to lie in 0 to 1"),
        ("pipeline five-stage --m 9 --n 9 --k 9 --cpu 2", "cpu_share = 2.0 has to lie in 0 to 1"),
        ("pipeline five-stage --m 9 --n 9 --k 9 --trace no/such/file", "can't write no/such/file"),
        ("pipeline five-stage --m 9 --n 9 --k 100000", "try a smaller block"),
    ],
)
def test_mistakes_are_told_in_a_line(words, expected, capsys):
    assert expected in refused(capsys, words.split())
