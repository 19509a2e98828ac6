"""The project as a whole: its files agree, it starts as the README says, and imports little."""

import ast
import contextlib
import functools
import importlib
import operator
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
import yaml
from new_python import printed_by
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from repository import ROOT
from sampling import ROWS

import cypresskit
from cypresskit.cli import cmd_lab
from cypresskit.cli.command import COMMANDS
from tools import score

CONFIGURED = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT, GROUPS = CONFIGURED["project"], CONFIGURED["dependency-groups"]
PYTHONS = ("3.11", "3.13")
README = (ROOT / "README.md").read_text()
PYTHON = ("cypresskit", "tests", "tools")  # what is Python
EXTRAS = PROJECT["optional-dependencies"]
#: What the package runs by.
RUN_BY = [
    Requirement(text)
    for text in [*PROJECT["dependencies"], *EXTRAS["draw"], *EXTRAS["lab"]]
    if not text.startswith("cypresskit")
]


def names(requirements):
    """What is required, that of our own extras included."""
    wanted = [Requirement(text) for text in requirements]
    own = [
        name
        for requirement in wanted
        for name in requirement.extras
        if requirement.name == "cypresskit"
    ]
    return {canonicalize_name(r.name) for r in wanted if r.name != "cypresskit"}.union(
        *(names(EXTRAS[e]) for e in own)
    )


CONSTRAINTS = [
    line for line in (ROOT / "constraints.txt").read_text().splitlines() if line and line[0] != "#"
]


def constraints(python):
    """Name to version, as constraints.txt gives them for that Python."""
    found = {}
    for requirement in map(Requirement, CONSTRAINTS):
        if requirement.marker is None or requirement.marker.evaluate({"python_version": python}):
            name = canonicalize_name(requirement.name)
            assert name not in found, f"{name} has two versions on Python {python}"
            (exact,) = requirement.specifier
            assert exact.operator == "==", name
            found[name] = exact.version
    return found


def run(*command, **options):
    # These tests run under make themselves: what it tells its children must not reach the make that
    # is tested.
    of_make = ("MAKEFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "MFLAGS", "ARGS", "PYTHON", "VENV")
    env = {name: value for name, value in os.environ.items() if name not in of_make}
    return subprocess.run(
        command, env=env, capture_output=True, text=True, **{"cwd": ROOT} | options
    )


def tracked():
    """The text files of the project."""
    listing = run("git", "ls-files", "-z")
    if listing.returncode:
        pytest.skip("not a git checkout: which files belong to the project isn't known")
    files = [ROOT / name for name in listing.stdout.split("\0") if name]
    return [file for file in files if file.is_file() and b"\0" not in file.read_bytes()[:4096]]


# -- versions
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("python", PYTHONS)
def test_constraints_pin_every_dependency_within_its_bounds(python):
    pinned = constraints(python)
    wanted = [PROJECT["dependencies"], *EXTRAS.values(), *GROUPS.values()]
    assert set().union(*map(names, wanted)) <= pinned.keys()
    for wanted in RUN_BY:
        assert ">=" in str(wanted) and pinned[canonicalize_name(wanted.name)] in wanted.specifier


def test_conda_brings_every_dependency_within_its_bounds():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]
    listed = [Requirement(line) for line in environment[1:] if isinstance(line, str)]
    brought = {canonicalize_name(r.name): r.specifier for r in listed}
    builds = map(Requirement, CONFIGURED["build-system"]["requires"])
    for requirement in (*RUN_BY, *builds):
        assert brought[canonicalize_name(requirement.name)] == requirement.specifier
    assert environment[0].removeprefix("python=") in PYTHONS


def test_binder_has_the_dependencies_at_pinned_versions():
    python = (ROOT / "binder/runtime.txt").read_text().strip().removeprefix("python-")
    assert python in PYTHONS
    lines = [
        line
        for line in (ROOT / "binder/requirements.txt").read_text().splitlines()
        if line[0] != "#"
    ]
    pinned = constraints(python)
    of_binder = {
        "jupyterlab",
        "ipython",
        "nbclient",
        "nbformat",
    }  # which its own environment brings
    wanted = {
        name: pinned[name]
        for name in names([*PROJECT["dependencies"], *EXTRAS["draw"]]) - of_binder
    }
    assert {
        canonicalize_name(r.name): str(r.specifier).removeprefix("==")
        for r in map(Requirement, lines)
    } == wanted


def test_python_versions_agree():
    accepted = SpecifierSet(PROJECT["requires-python"])
    classified = {
        c.rpartition(" ")[2] for c in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", c)
    }
    assert set(PYTHONS) <= classified
    assert all(python in accepted for python in classified)
    assert "3.10" not in accepted


def test_version_is_the_same_everywhere():
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"] == cypresskit.__version__
    assert f"## {cypresskit.__version__} " in (ROOT / "CHANGELOG.md").read_text()


# -- scripts and addresses
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["binder/postBuild", "binder/start", ".ci/run", ".ci/apt", ".ci/sandbox"]
)
def test_scripts_can_be_run(name):
    assert (ROOT / name).stat().st_mode & 0o111
    assert run("bash", "-n", name).returncode == 0


OPENED = f"{cmd_lab.FOLDER}/00_start_here.ipynb"


# -- README and make
# --------------------------------------------------------------------------------------------------


ADDRESSED = ("README.md", "pyproject.toml")  # the files that have the repository's address


def test_one_command_sets_the_public_address(tmp_path):
    for name in (".ci/address", *ADDRESSED):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    ours = re.search(r"git clone https://github\.com/(\S+)", README)
    assert ours or "mybinder.org" not in README, "a badge without a repository"
    right = "https://github.com/ada/kit"
    for url in ("github.com/a/b", "https://github.com/OWNER", f"{right}.git", f"{right}/", right):
        assert run(sys.executable, ".ci/address", url, cwd=tmp_path).returncode == (
            "/ada/" not in url
        )
    readme = (tmp_path / "README.md").read_text()
    assert re.search(
        r"```sh\ngit clone https://github.com/ada/kit && cd kit\nmake lab\n```", readme
    )
    assert re.findall(r"mybinder.org/v2/gh/(\S+)\)", readme) == [
        f"ada/kit/HEAD?urlpath=lab/tree/{OPENED}"
    ]
    configured = tomllib.loads((tmp_path / "pyproject.toml").read_text())
    assert re.findall(r"\]\((\S+?)\)", readme)[0] == "https://ada.github.io/kit/", "the first link"
    assert configured["project"].pop("urls") == {
        "Homepage": "https://ada.github.io/kit/",
        "Source": "https://github.com/ada/kit",
        "Issues": "https://github.com/ada/kit/issues",
        "Changes": "https://github.com/ada/kit/blob/HEAD/CHANGELOG.md",
    }
    without = {name: part for name, part in PROJECT.items() if name != "urls"}
    assert configured == CONFIGURED | {"project": without}
    for file in tracked() if ours else ():
        assert file.name in ADDRESSED or ours[1] not in file.read_text(errors="replace"), (
            f"{file} has the address, too"
        )


def test_readme_links_lead_somewhere():
    for target in re.findall(r"(?:\]\(|src=\"|srcset=\")(?!http)([^)#\"]+)", README):
        assert (ROOT / target).exists(), f"README.md points to {target}"


FIGURES = (ROOT / "docs/figures.md").read_text()
(SCORE,) = re.findall(r"<!-- score -->\n(.+?)<!-- end of score -->", FIGURES, re.DOTALL)


@pytest.mark.nightly
def test_the_score_in_the_figures_is_current(capsys):
    score.main()
    assert capsys.readouterr().out == SCORE, (
        "put what `python -m tools.score` prints into docs/figures.md"
    )


def test_published_figures_are_met_as_nearly_as_is_said():
    """In the table, whose numbers are the model's; see also the chart of each curve."""
    bounds = {
        getattr(score, name, name): bounds for name, *bounds in ROWS["test_project"]["figures_met"]
    }
    names = {words: name for name, words in score.WORDS.items()}
    rows = [[*line.strip("| ").split(" | "), *[""] * 6] for line in SCORE.splitlines()[2:]]
    judged = [(names[row[1]], row) for row in rows if names.get(row[1]) in bounds]
    assert {quantity for quantity, _ in judged} == bounds.keys()
    for quantity, (_, words, _, _, simulated, ratio, *_) in judged:
        least, most = bounds[quantity]
        for one in (simulated if ratio == "-" else ratio).split(" to "):
            assert least <= float(one) <= most, words


@pytest.mark.parametrize("version", [(2, 7, 18), (3, 6, 15), (3, 10, 13)])
def test_a_python_that_is_too_old_is_told_so_in_one_sentence(version):
    """Before pip looks for packages, whose conflicts it would report."""
    (least,) = re.findall(r">=(.*)", PROJECT["requires-python"])
    code = f"import runpy, sys; sys.version_info = {version}; runpy.run_path('setup.py')"
    done = run(sys.executable, "-c", code)
    words = f"cypresskit needs Python {least} or later, and this is {'.'.join(map(str, version))}."
    assert done.returncode and done.stderr.splitlines() == [words]
    assert f"needs Python {least} or later" in (ROOT / "Makefile").read_text()
    assert f"You need Python {least} or later" in README


def test_make_knows_its_targets():
    targets = "lab test rest whole mutants coverage oldest lint format bench docs clean".split()
    plan = run("make", "--dry-run", *targets)
    assert plan.returncode == 0, plan.stderr
    assert set(targets) <= set(run("make", "help").stdout.split())


def test_make_needs_nothing_when_all_is_installed(tmp_path):
    """A second `make lab` goes straight to JupyterLab; an edit of the constraints installs
    again.
    """
    venv = tmp_path / "venv"
    (venv / "bin").mkdir(parents=True)
    for name in ("bin/python", "installed", "installed-tests"):
        (venv / name).touch()
    assert run("make", "-n", f"VENV={venv}", "lab").stdout.splitlines() == [
        f"{venv}/bin/cypresskit lab "
    ]
    assert "pip install" not in run("make", "-n", f"VENV={venv}", "test").stdout
    assert "pip install" in run("make", "-n", f"VENV={venv}", "-W", "constraints.txt", "lab").stdout


def test_the_ten_functions_of_the_tour_exist():
    tour = (ROOT / "CONTRIBUTING.md").read_text().split("## From one")[1].split("\n## ")[0]
    stations = re.findall(r"\[`(\w+)`\]\((cypresskit/([a-z]+)\S*\.py)\)", tour)
    assert len({room for *_, room in stations}) == len(stations) == 10
    for name, file, _ in stations:
        nodes = ast.walk(ast.parse((ROOT / file).read_text()))
        names = {node.name for node in nodes if isinstance(node, ast.FunctionDef)}
        assert name in names, f"{file} has no {name}"


# -- the package
# --------------------------------------------------------------------------------------------------


distributions = functools.cache(packages_distributions)


@pytest.mark.parametrize("folder", PYTHON)
def test_what_is_imported_is_declared(folder):
    """A package that only happens to be there, by hand or because another wants it, is a fault on
    the next machine.
    """
    wanted = [EXTRAS["lab"], *([] if folder == "cypresskit" else GROUPS.values())]
    modules = set()
    trees = [ast.parse(file.read_text()) for file in (ROOT / folder).rglob("*.py")]
    for node in (node for tree in trees for node in ast.walk(tree)):
        if isinstance(node, ast.Import):
            modules.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            modules.add(node.module)
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.importorskip":
            modules.add(ast.literal_eval(node.args[0]))
    ours = {path.stem for path in (ROOT / "tests").rglob("*.py")} | {
        "answers",
        "cypresskit",
        "tools",
    }
    ours |= {"cypresskit_native", "_host", "stand_ins"}  # in a browser
    ours |= {"comm"}  # in a browser it comes with ipywidgets: tools/workbook
    foreign = {module.partition(".")[0] for module in modules} - sys.stdlib_module_names - ours
    declared = names(PROJECT["dependencies"]).union(*map(names, wanted))
    installed = distributions()
    found = {module: names(installed.get(module, [module])) for module in foreign}
    assert "numpy" in foreign
    assert not {module for module, names in found.items() if not names & declared}, (
        "not in pyproject.toml"
    )


def test_import_loads_only_what_every_user_needs():
    loaded = set(printed_by("import cypresskit, sys; print(*sys.modules)").split())
    assert not loaded & {"bokeh", "ipywidgets", "IPython", "numba", "llvmlite"}
    layers = "compiler timing host draw teach editing grading isolated cli".split()
    assert not loaded & {f"cypresskit.{layer}" for layer in layers}
    fast = {name for name in loaded if name.startswith("cypresskit.machine.compiled.")}
    assert not fast, "the compiled engine is loaded with the first launch"


NOTHING_DRAWS = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("bokeh", "anywidget"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
import cypresskit as ck

packages = [ck, ck.draw, *(getattr(ck.teach, name) for name in dir(ck.teach))]
for package in packages:
    for name in getattr(package, "later", ()):
        try:
            getattr(package, name)
        except ImportError as error:
            print(error)
"""


def test_what_needs_bokeh_says_so_where_it_is_missing():
    """Of all names that are imported when first used."""
    said = printed_by(NOTHING_DRAWS).splitlines()
    assert "ck.draw.chip needs bokeh: pip install 'cypresskit[draw]'" in said
    assert any(line.startswith("ck.teach.") for line in said) and len(said) > 12
    assert all(re.fullmatch(r"ck\.[\w.]+ needs \w+: pip install .+", line) for line in said)


@pytest.mark.nightly
def test_an_sdist_is_the_repository_and_a_wheel_has_lessons(tmp_path):
    files = run("git", "ls-files", "-z").stdout.split("\0")[:-1] or pytest.skip(
        "not a git checkout"
    )
    source = tmp_path / "source"
    for name in files:
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, source / name)
    build = "import setuptools.build_meta as b; b.build_sdist('..'); b.build_wheel('..')"
    built = subprocess.run(
        [sys.executable, "-c", build], cwd=source, capture_output=True, text=True
    )
    assert built.returncode == 0, built.stderr
    with tarfile.open(next(tmp_path.glob("*.tar.gz"))) as sdist:
        assert set(files) <= {name.partition("/")[2] for name in sdist.getnames()}
    with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as wheel:
        packed = {name for name in wheel.namelist() if ".dist-info/" not in name}
        (metadata,) = (
            wheel.read(name).decode() for name in wheel.namelist() if name.endswith("/METADATA")
        )
    lessons = {
        f"cypresskit/lessons/{Path(name).name}"
        for name in files
        if re.fullmatch(r"notebooks/[^/]+ipynb", name)
    }
    plugin = {"cypresskit_nbval.py"}
    ours = {name for name in files if name.startswith("cypresskit/")}
    assert packed == ours | lessons | plugin
    page = (ROOT / "docs" / "package.md").read_text()
    assert metadata.endswith(page)
    links = re.findall(r'(?:\]\(|(?:src|srcset)=")([^)"]+)', page)
    assert all(link.startswith("https://") for link in links), "the package index has no files"


# -- names, for mypy, workflows and readers
# --------------------------------------------------------------------------------------------------


@pytest.mark.nightly
def test_mypy_knows_the_package_in_a_users_script(tmp_path):
    """Names that are imported when first used; a name that isn't there is refused."""
    script = tmp_path / "script.py"
    script.write_text(
        "import numpy as np\nimport cypresskit as ck\n\n"
        "product = ck.gemm(np.zeros((2, 2)), np.zeros((2, 2)))\nsize: int = product.size\n"
        'reveal_type(ck.simulate("sgemm_tn", 64))\nck.simulat\n'
    )
    strict = ("--strict", "--follow-imports=silent")
    result = run(sys.executable, "-m", "mypy", *strict, str(script))
    known, refused, last = result.stdout.splitlines()
    assert known.endswith('note: Revealed type is "cypresskit.timing.report.Report"'), result.stdout
    assert ':7: error: Module has no attribute "simulat"' in refused
    assert last.startswith("Found 1 error in 1 file")


# -- the public forge
# --------------------------------------------------------------------------------------------------

WORKFLOWS = sorted(ROOT.glob(".github/workflows/*.yml"))


def test_workflows_call_what_there_is():
    steps = "\n".join(file.read_text() for file in WORKFLOWS)
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.M))
    assert set(re.findall(r"\bmake (\w+)", steps)) <= targets
    assert all((ROOT / name).exists() for name in re.findall(r"run: (\.\S+)", steps))
    assert set(re.findall(r'bin/cypresskit"? (\w+)', steps)) <= {*COMMANDS.choices}
    quick = yaml.safe_load(WORKFLOWS[-1].read_text())["jobs"]["quick"]
    offered = {c.rpartition(" :: ")[2] for c in PROJECT["classifiers"] if ":: Python ::" in c}
    assert offered == set(quick["strategy"]["matrix"]["python"])


TEXTS = [
    ROOT / "README.md",
    *(ROOT / "docs").glob("*.md"),
    *(ROOT / "notebooks" / "source").glob("*.md"),
]


@pytest.mark.parametrize("file", TEXTS, ids=lambda file: file.name)
def test_every_name_that_a_lesson_or_guide_mentions_exists(file):
    """``ck.`` and what follows it by dots, and whatever is imported from the package."""
    text, missing = file.read_text(), []
    for name in set(re.findall(r"\bck\.([A-Za-z_][\w.]*\w)", text)):
        try:
            operator.attrgetter(name)(cypresskit)
        except AttributeError:
            missing.append(f"ck.{name}")
    for module, names in re.findall(r"from (cypresskit[\w.]*) import (\([^)]*\)|[\w, ]+)", text):
        for name in re.findall(r"\w+", re.sub(r" as \w+", "", names)):
            if not hasattr(importlib.import_module(module), name):
                with contextlib.suppress(ImportError):  # a module in it
                    importlib.import_module(f"{module}.{name}")
                    continue
                missing.append(f"{module}.{name}")
    assert missing == []
