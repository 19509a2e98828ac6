"""The `cypresskit` command."""

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from kernel_texts import TEXTURE
from repository import ROOT
from sampling import from_rows

from cypresskit import cli
from cypresskit.cli import cmd_lab
from cypresskit.kernels.own import read_text

SCALE = f"""il_ps_2_0
dcl_input_position_interp(linear_noperspective) vWinCoord0.xy__
{TEXTURE.format(0)}
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


def error_of(capsys, words, status=1):
    """What a command says that ends with ``status``: 2 where argparse refuses it."""
    if status == 2:
        with pytest.raises(SystemExit) as end:
            cli.main(words)
        assert end.value.code == 2
    else:
        assert cli.main(words) == status
    error = capsys.readouterr().err
    assert "Traceback" not in error and (
        status == 2 or error.startswith(f"cypresskit {words[0]}: ")
    )
    return error


def test_what_readme_and_api_show_runs(here):
    np.save("x.npy", np.load("a.npy"))
    for page in ("README.md", "docs/api.md"):
        names = {}
        text = (ROOT / page).read_text()
        for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
            exec(block, names)
    assert np.array_equal(np.load("y.npy"), np.load("x.npy") * np.float32([2, 3, 4, 5]))


#: Files that are no programs, by a name for what they are.
RUBBISH = {
    "binary": bytes(range(256)) * 20,
    "latin": "il_ps_2_0\n; Größe\nend\n".encode("latin-1"),
    "utf16": "il_ps_2_0\nend\n".encode("utf-16"),
    "long": b"il_ps_2_0\n" + b"mov r0, r1\n" * 950_000 + b"end\n",
}


@from_rows
def test_files_that_are_no_programs_are_rejected_in_a_line(here, file, said):
    Path("folder").mkdir()
    os.mkfifo("pipe")
    if file in RUBBISH:
        Path(file).write_bytes(RUBBISH[file])
    with pytest.raises((OSError, ValueError)) as error:
        read_text(Path(file))
    assert str(error.value).startswith(said)


@pytest.mark.parametrize("command", [[], ["lab"], ["contest"], ["grade"]])
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
    assert named == {"lab", "contest", "grade", "handout"}


def test_every_command_that_the_documents_name_is_understood():
    paths = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("notebooks/source/*.md")]
    texts = [path.read_text() for path in paths]
    named = {words for text in texts for words in re.findall(r"`cypresskit (\w+ [^`>]+)", text)}
    assert len([cli.parse_arguments(words.split()) for words in named]) > 3


def test_words_that_make_no_sense_are_refused(capsys):
    assert "invalid int value: 'x'" in error_of(capsys, ["contest", "x.il", "--n", "x"], 2)
    for n in ("255", "5000"):
        said = f"N is a whole number from 256 to 4,096, not {n}"
        assert said in error_of(capsys, ["contest", "x.il", "--n", n])
    assert "contest has no option --fast" in error_of(capsys, ["contest", "x.il", "--fast"], 2)


def test_a_full_disk_is_reported_in_a_line(tmp_path):
    words = ["handout", "09", "--to", str(tmp_path / "week3")]
    command = [sys.executable, "-u", "-m", "cypresskit", *words]
    with open("/dev/full", "w") as full:
        ended = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert ended.stderr == "cypresskit handout: can't go on: No space left on device\n"
    assert ended.returncode == 1


def test_names_of_files_cannot_steer_the_terminal(here, capsys):
    error = error_of(capsys, ["contest", "./\x1b[2Jevil.il"])
    assert "\x1b" not in error and r"\x1b[2Jevil.il: there is no such file" in error


def test_lab_without_lessons_says_where_to_get_them(here, monkeypatch, capsys):
    monkeypatch.setattr(cmd_lab, "CHECKOUT", here / "site-packages/notebooks")
    monkeypatch.setattr(cmd_lab, "INSTALLED", here / "site-packages/cypresskit/lessons")
    error = error_of(capsys, ["lab"])
    assert "make lab" in error and str(here / "site-packages/notebooks") in error


@pytest.fixture
def started(here, monkeypatch):
    """The options with which JupyterLab was started, which has lessons in no place yet."""
    from jupyterlab.labapp import LabApp

    options = []
    monkeypatch.setattr(LabApp, "launch_instance", options.append)
    monkeypatch.setenv("JUPYTER_CONFIG_PATH", "")  # which the command sets
    for name in ("CHECKOUT", "INSTALLED"):
        monkeypatch.setattr(cmd_lab, name, here / "nowhere" / name)
    return options


@pytest.mark.parametrize("place", ["CHECKOUT", "INSTALLED"])
def test_lessons_are_copied_alone_and_never_over_work(here, started, monkeypatch, capsys, place):
    """Into a folder beside the checkout, or in this one; there they can be written, though those of
    an installed package can't.
    """
    shutil.copytree(ROOT / "notebooks", here / "clone/notebooks")
    (here / "clone/notebooks/00_start_here.ipynb").chmod(0o444)
    monkeypatch.setattr(cmd_lab, place, here / "clone/notebooks")
    own = here / ("clone" if place == "CHECKOUT" else "") / "cypresskit-lessons"
    if place == "CHECKOUT":
        (here / "clone/tests").mkdir()
        monkeypatch.chdir(here / "clone/tests")
    assert cli.main(["lab", "--no-browser"]) == 0
    assert (own / "00_start_here.ipynb").stat().st_mode & 0o200
    (own / "00_start_here.ipynb").write_text("my work")
    assert cli.main(["lab", "--no-browser"]) == 0
    options = {
        f"--ServerApp.root_dir={own}",
        f"--LabApp.workspaces_dir={own}/.jupyterlab",
        "--LabApp.default_url=/lab/tree/00_start_here.ipynb",
        "--no-browser",
    }
    assert options < set(started[0]) and str(own) in capsys.readouterr().out
    copied = {path.name for path in own.iterdir()} - {".jupyterlab"}
    assert copied == {path.name for path in (ROOT / "notebooks").glob("*.ipynb")}
    assert (own / "00_start_here.ipynb").read_text() == "my work"
    monkeypatch.chdir(own)
    assert cmd_lab.find_lessons()[0].parent == own, "a folder that has lessons is opened itself"


@pytest.mark.parametrize("words", ["deep/mine {}", "{} deep/mine"])
def test_lessons_go_where_it_is_said_and_jupyterlab_gets_its_options(
    words, here, started, monkeypatch, capsys
):
    monkeypatch.setattr(cmd_lab, "INSTALLED", ROOT / "notebooks")
    assert cli.main(["lab", *words.format("--no-browser --port 9000").split()]) == 0
    assert f"--ServerApp.root_dir={here}/deep/mine" in started[-1]
    assert started[-1][-3:] == ["--no-browser", "--port", "9000"]
    assert capsys.readouterr().out.rstrip().endswith(f"{here}/deep/mine")


def lessons(folder, text):
    """A folder with a lesson in it."""
    folder.mkdir(parents=True)
    (folder / "00_start_here.ipynb").write_text(text)
    return folder


def test_a_lesson_that_is_named_is_opened_in_its_folder(here, started):
    assert cli.main(["lab", str(lessons(here / "one", "alone"))]) == 0
    assert f"--ServerApp.root_dir={here}/one" in started[-1]


@pytest.mark.parametrize("readers", ["", ".jp-Notebook { color: teal }"])
def test_the_lessons_style_sheet_leaves_the_readers_own_its_say(readers, tmp_path):
    """In JupyterLab the last rule wins."""
    own = tmp_path / "custom"
    own.mkdir()
    if readers:
        (own / "custom.css").write_text(readers)
    text = (cmd_lab.write_style_sheet(tmp_path / "run", own) / "custom.css").read_text()
    lessons = (cmd_lab.SETTINGS / "labconfig/custom.css").read_text()
    assert lessons and text == lessons + readers


#: Copies lessons, and is killed when it has opened so many files to write them.
KILLED = """
import os, signal, sys
from pathlib import Path
from cypresskit.cli import cmd_lab

cmd_lab.CHECKOUT = Path("clone")
left = int(sys.argv[1])

def count(event, about):
    global left
    if event == "open" and "mine" in str(about[0]) and about[2] & os.O_WRONLY:
        left -= 1
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)

sys.addaudithook(count)
cmd_lab.find_lessons(Path("mine"))
"""


@pytest.mark.parametrize("opened", [1, 2, 8, 15])
def test_a_copy_of_the_lessons_that_was_killed_is_completed(here, monkeypatch, opened):
    """Each is there and whole, and what a student wrote since stays."""
    names = [f"{n:02}_lesson.ipynb" for n in range(15)]
    (here / "clone").mkdir()
    for name in names:
        (here / "clone" / name).write_text(name)
    monkeypatch.setattr(cmd_lab, "CHECKOUT", here / "clone")
    killed = subprocess.run([sys.executable, "-c", KILLED, str(opened)])
    assert killed.returncode == -signal.SIGKILL
    (here / "mine" / names[0]).write_text("my work")
    if opened > 2:  # the student is there
        monkeypatch.chdir(here / "mine")
    found = cmd_lab.find_lessons(Path("mine") if opened <= 2 else None)
    assert [path.name for path in found] == names
    assert [path.read_text() for path in found] == ["my work", *names[1:]]
    (here / "mine" / names[3]).unlink()  # on purpose
    assert len(cmd_lab.find_lessons(here / "mine")) == 14


def test_outside_a_clone_lessons_go_to_the_folder_where_one_is(here, monkeypatch):
    monkeypatch.setattr(cmd_lab, "CHECKOUT", lessons(here / "clone/notebooks", "new"))
    (here / "elsewhere").mkdir()
    monkeypatch.chdir(here / "elsewhere")
    assert cmd_lab.find_lessons()[0].parent == here / "elsewhere/cypresskit-lessons"
    handed_out = lessons(here / "handed-out", "three of them")
    assert [path.parent for path in cmd_lab.find_lessons(handed_out)] == [handed_out]
    assert not (here / "clone/cypresskit-lessons").exists()
