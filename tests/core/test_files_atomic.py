"""A file that is saved is whole, and the one that was there."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial

from cypresskit.files.atomic import save_file


def test_threads_may_save_one_file_with_the_longest_name(tmp_path):
    path, texts = tmp_path / ("n" * 250), ["a" * 100_000, "b" * 200_000]
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(partial(save_file, path), texts * 20))
    assert path.read_text() in texts and list(tmp_path.iterdir()) == [path]


def test_a_file_behind_a_link_keeps_its_permissions(tmp_path):
    real, link = tmp_path / "real", tmp_path / "link"
    real.touch()
    real.chmod(0o640)
    link.symlink_to(real)
    save_file(link, "text")
    assert link.is_symlink() and real.read_text() == "text" and real.stat().st_mode & 0o777 == 0o640
