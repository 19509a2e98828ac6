"""What `make bench` measures and compares; how fast anything is, is no test's business."""

import json

import pytest

from cypresskit.files.disk_cache import DiskCache, cache_folder
from tools import bench


def test_a_ratio_is_the_median_of_runs_taken_in_turn():
    taken = iter([4.0, 2.0, 9.0, 3.0, 8.0, 4.0])
    row = bench.row("x", lambda: next(taken), lambda: next(taken), most=3)
    assert (row["ratio"], row["here"], row["yardstick"]) == (2, 8, 3) and row["span"] == [2, 3]


def test_a_product_is_timed_only_if_it_is_right(monkeypatch):
    monkeypatch.setattr(bench, "LONG", 0)
    assert bench.product("ddgemm_tn_fma", 16, "compiled", 1)["ratio"] > 0
    monkeypatch.setattr(bench.ck, "gemm", lambda a, b, **_: a @ b)
    with pytest.raises(SystemExit, match="sgemm_tn, N = 16: off by"):
        bench.product("sgemm_tn", 16, "compiled", 1)


@pytest.mark.parametrize(("ratio", "failed"), [(1.0, 0), (2.9, 0), (3.1, 1)])
def test_three_times_what_is_kept_fails_and_only_if_asked(
    ratio, failed, monkeypatch, tmp_path, capsys
):
    monkeypatch.setattr(bench, "KEPT", tmp_path / "kept.json")
    monkeypatch.setattr(
        bench,
        "in_new_process",
        lambda measured, group: [{"name": "a", "ratio": 1.0}, {"name": "b", "ratio": 0.001}],
    )
    assert bench.main(["clock", "--write"]) == 0
    assert json.loads(bench.KEPT.read_text()) == {"clock": {"a": 1}}, (
        "what takes next to nothing isn't kept"
    )
    monkeypatch.setattr(
        bench,
        "in_new_process",
        lambda measured, group: [{"name": "a", "ratio": ratio}, {"name": "new", "ratio": 9.0}],
    )
    assert (bench.main(["clock"]), bench.main(["clock", "--check"])) == (0, failed)
    assert (
        "a: 3.1 times its yardstick, more than 3 times the stored ratio" in capsys.readouterr().out
    ) == bool(failed)


def test_what_is_kept_is_of_groups_that_there_are():
    kept = json.loads(bench.KEPT.read_text())
    assert set(kept) <= set(bench.GROUPS) and all(kept.values())
    assert all(name.startswith(bench.TIMED) for name in kept["clock"])


def test_reports_an_unknown_group(capsys):
    with pytest.raises(SystemExit):
        bench.main(["clocks"])
    assert "no group clocks: choose from arithmetic," in capsys.readouterr().err


def test_edits_are_run_in_parts_and_for_as_long_as_is_allowed(monkeypatch):
    monkeypatch.setattr(bench, "EDITED", 256)
    both = bench.edit_times(3, seed=4)
    assert len(both) == 3 and all("text" in times for times in both)
    assert bench.edit_times(3, seed=4, most=0.0) == []
    rows = list(bench.edits(3, 4))
    assert rows[0]["name"] == "an edit: text" and " of 3 within 0.2 s" in rows[0]["note"]


def test_an_answer_to_another_edit_ends_the_measurement():
    clock = bench.PartClock("7")
    clock.note({"type": "answer", "edit": "7", "part": "code"})
    with pytest.raises(SystemExit, match="edit 7 received the answer to edit 6"):
        clock.note({"type": "answer", "edit": "6", "part": "verdict"})


def test_a_lesson_is_read_cell_by_cell_in_a_process_of_its_own():
    spent, memory = bench.read_lesson(["x = list(range(10**6))", "y = len(x)"], bench.os.environ)
    assert len(spent) == 2 and spent[0] > spent[1] >= 0
    assert memory > bench.read_lesson([], bench.os.environ)[1]
    with pytest.raises(SystemExit, match=r"(?s)^x = 1.*ZeroDivisionError"):
        bench.read_lesson(["x = 1", "x / 0"], bench.os.environ)


def test_a_lesson_that_is_read_first_has_machine_code_and_no_launches(monkeypatch, tmp_path):
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for kind in ("kernel", "launch"):
        DiskCache(cache_folder(), kind, 9).write("0" * 32, b"contents")
    bench.keep_machine_code(tmp_path / "copy")
    copied = [file.name.partition("-")[0] for file in (tmp_path / "copy").iterdir()]
    assert copied == ["kernel"]


def test_a_lesson_is_read_again_with_the_launches_of_the_first_time(monkeypatch, tmp_path):
    source = tmp_path / "00_short.md"
    source.write_text("```python\nimport cypresskit as ck\nck.simulate('sgemm_tn', 64)\n```\n")
    monkeypatch.setattr(bench.book, "sources", lambda folder: [source])
    monkeypatch.setattr(bench, "loop", lambda: 3.0)
    kept = []

    def read(cells, variables):
        if cells:
            cache = bench.Path(variables["XDG_CACHE_HOME"], "cypresskit")
            kept.append(len([*cache.glob("launch-*")]))
        return read_lesson(cells, variables)

    read_lesson = bench.read_lesson
    monkeypatch.setattr(bench, "read_lesson", read)
    names = [row["name"] for row in bench.lessons()]
    assert kept == [0, 1]
    assert names[:3] == ["00, first: all", "00, first: its slowest cell", "00, first: memory"]
