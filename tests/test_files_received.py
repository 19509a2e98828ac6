"""What is found in folders that somebody else has filled."""

import pytest

from cypresskit.files.received import DEEPEST, files_in


@pytest.mark.parametrize("depth", [0, 1, DEEPEST, DEEPEST + 1, 3 * DEEPEST])
def test_files_are_found_in_so_many_folders_and_no_more(depth, tmp_path):
    folder = tmp_path.joinpath(*"d" * depth)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "work").write_text("")
    ((path, fault),) = files_in(tmp_path)
    if depth <= DEEPEST:
        assert (path, fault) == (folder / "work", "")
    else:
        assert path == tmp_path.joinpath(*"d" * (DEEPEST + 1)) and "more than" in fault
