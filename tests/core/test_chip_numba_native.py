"""The disk cache of the timing model's native code: stale after an edit, and never a reason to
fail.
"""

import importlib.util
import warnings

import pytest
from new_python import printed_by

from cypresskit.chip import compiled_later
from cypresskit.chip import numba_native as module
from cypresskit.files.disk_cache import SourceFiles

TEXT = """
from cypresskit.chip.native import native, part

product = part(lambda x, y: x * y)

@native
def twice(x):
    return product(x, 2)

@native
def thrice(x):
    return 3 * x
"""


@pytest.fixture
def session(tmp_path, monkeypatch):
    """A function that does what a new Python would: import the file, call both functions, and say
    how often something came from disk and what was warned of.
    """
    path = tmp_path / "tiny.py"
    path.write_text(TEXT)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))

    def run():
        module.warn_once.cache_clear()
        spec = importlib.util.spec_from_file_location("tiny", path)
        tiny = importlib.util.module_from_spec(spec)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            spec.loader.exec_module(tiny)
            assert (tiny.twice(4), tiny.thrice(4)) == (8, 12)
        hits = sum(sum(f.compiled.stats.cache_hits.values()) for f in (tiny.twice, tiny.thrice))
        return hits, [str(w.message) for w in caught]

    return run


def kept(tmp_path, ending):
    return sorted(tmp_path.rglob(f"*.{ending}"))


def test_the_second_session_compiles_nothing(session, tmp_path, monkeypatch):
    assert session() == (0, [])
    assert len(kept(tmp_path, "bin")) == 2  # nothing for the part
    monkeypatch.setattr(
        "numba.core.base.BaseContext.refresh", None
    )  # what numba itself could compile isn't loaded
    assert session() == (2, [])


def test_what_compiles_says_so_once(session, capsys, monkeypatch):
    monkeypatch.setattr(module, "is_watched", lambda: True)
    module.notify_once.cache_clear()
    session()
    assert capsys.readouterr().err == module.NOTICE + "\n"
    module.notify_once.cache_clear()
    session()
    assert capsys.readouterr().err == ""


def test_an_edit_of_any_file_with_native_code_is_noticed(session, tmp_path, monkeypatch):
    session()
    monkeypatch.setattr(module, "SOURCES", SourceFiles(lambda: kept(tmp_path, "py")))
    assert session() == (0, [])
    assert session() == (2, [])
    (tmp_path / "units").mkdir()
    one, other = tmp_path / "units" / "alu.py", tmp_path / "report.py"
    one.write_text("from cypresskit.chip.native import part\n@part\ndef f(): ...")
    other.write_text("text")
    sources = SourceFiles(lambda: compiled_later.native_sources(tmp_path))
    other.write_text("other text")
    assert sources.is_unchanged()
    one.write_text("from cypresskit.chip.native import part\n@part\ndef f(): pass")
    assert not sources.is_unchanged()


def test_sources_are_read_with_the_package_and_not_with_numba():
    """Else old functions, which Python holds, would be saved as those of a file edited since."""
    read = "import sys, cypresskit.timing; from cypresskit.chip.compiled_later import SOURCES"
    assert printed_by(f"{read}; print('numba' in sys.modules)") == "False\n"
    assert module.SOURCES is compiled_later.SOURCES
    names = {path.name for path in compiled_later.native_sources()}
    assert {"compiled_later.py", "numba_native.py", "engine.py", "cache.py"} <= names


INTERRUPTED = """
import _thread, sys
import cypresskit as ck

class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == "numba.core.types":  # in the middle of numba's import
            sys.meta_path.remove(self)
            _thread.interrupt_main()

sys.meta_path.insert(0, Interrupt())
try:
    ck.simulate("sgemm_tn", 64)
except KeyboardInterrupt:
    print("interrupted", ck.simulate("sgemm_tn", 64).wavefronts)
"""


def test_numba_can_be_used_after_an_interrupt_of_its_import():
    assert printed_by(INTERRUPTED) == "interrupted 1\n"


def test_numba_without_native_code_is_refused_by_the_name_of_its_setting(monkeypatch):
    monkeypatch.setattr("numba.config.DISABLE_JIT", 1)
    with pytest.raises(RuntimeError, match="unset NUMBA_DISABLE_JIT"):
        module.native(len)


def test_where_nothing_can_be_written_one_warning_is_all(session, tmp_path):
    (tmp_path / "cypresskit").write_text("no folder")
    hits, (warning,) = session()
    assert hits == 0 and "can't be saved on disk" in warning and "NUMBA_CACHE_DIR" in warning


@pytest.mark.parametrize("contents", [None, b"", b"no pickle", b"cmissing_library\nthing\n."])
def test_a_damaged_file_is_replaced(session, tmp_path, contents):
    session()
    for path in kept(tmp_path, "bin"):
        path.write_bytes(path.read_bytes()[:20] if contents is None else contents)
    assert session() == (0, [])
    assert session() == (2, [])


def test_a_form_of_another_numba_is_not_loaded(session, tmp_path, monkeypatch):
    session()
    monkeypatch.setattr(module, "compiler", lambda: ("0.1.0", "another processor"))
    assert session() == (0, [])
    assert session() == (2, [])
