"""What is found in folders that somebody else has filled."""

import pytest

from cypresskit.files import received
from cypresskit.files.received import MAX_DEPTH, find_files, read_plain


@pytest.mark.parametrize("depth", [0, 1, MAX_DEPTH, MAX_DEPTH + 1, 3 * MAX_DEPTH])
def test_files_are_found_in_so_many_folders_and_no_more(depth, tmp_path):
    file = tmp_path.joinpath(*"d" * depth, "work")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("")
    ((path, fault),) = find_files(tmp_path)
    assert path == tmp_path.joinpath(*file.relative_to(tmp_path).parts[: MAX_DEPTH + 1])
    assert ("more than" in fault) == (depth > MAX_DEPTH) == bool(fault)


@pytest.mark.parametrize("count", range(7))
def test_files_beyond_the_most_that_are_read_are_counted(count, tmp_path, monkeypatch):
    monkeypatch.setattr(received, "MAX_FILES", 5)
    for n in range(count):
        (tmp_path / str(n)).write_text("")
    found = [fault for _, fault in find_files(tmp_path)]
    faults = list(filter(None, found))
    assert found.count("") == min(count, 5)
    assert faults == ["only the first 5 of its 6 files are read"] * (count == 6)


def test_a_plain_file_has_at_most_so_many_bytes(tmp_path):
    file = tmp_path / "work"
    for size in (0, 1, 5):
        file.write_bytes(b"x" * size)
        assert read_plain(file, 5) == b"x" * size
    for size in (6, 7, 11):
        file.write_bytes(b"x" * size)
        with pytest.raises(ValueError, match="more than 5 bytes"):
            read_plain(file, 5)
