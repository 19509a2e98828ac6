"""The disk cache: complete files, private to the user, the recently used ones."""

import os
import random

import pytest
from sampling import seeded

from cypresskit.files.disk_cache import DiskCache, SourceFiles, add_checksum, strip_checksum

UNCHANGED = SourceFiles(list)


@pytest.fixture
def files(tmp_path):
    return DiskCache(tmp_path / "cache" / "cypresskit", "thing", 4, UNCHANGED)


def test_cached_contents_are_read_unchanged(files):
    assert files.read("a") is None
    files.write("a", b"some\nbytes\0")
    files.write("b", b"")
    assert (files.read("a"), files.read("b")) == (b"some\nbytes\0", b"")


def test_once_a_source_was_edited_nothing_is_cached(tmp_path):
    """What was computed by the old one would be found by the new one's key."""
    source = tmp_path / "model.py"
    source.write_text("old")
    files = DiskCache(tmp_path / "cache", "thing", 4, SourceFiles(lambda: [source]))
    files.write("a", b"by old")
    source.write_text("new")
    files.write("b", b"by old")
    assert (files.read("a"), files.read("b")) == (b"by old", None)


def test_without_a_folder_nothing_is_cached():
    nowhere = DiskCache(None, "thing", 4, UNCHANGED)
    nowhere.write("a", b"bytes")
    assert nowhere.read("a") is None


@pytest.mark.parametrize("mode, is_private", [(0o700, True), (0o755, True), (0o777, False)])
def test_a_folder_that_others_may_write_to_is_not_used(files, mode, is_private):
    files.write("a", b"bytes")
    files.folder.chmod(mode)
    assert bool(files.read("a")) == is_private
    files.write("b", b"bytes")
    assert len([*files.folder.iterdir()]) == 1 + is_private


def test_a_linked_folder_is_not_used(files, tmp_path):
    files.write("a", b"bytes")
    linked = tmp_path / "linked"
    linked.symlink_to(files.folder)
    assert DiskCache(linked, "thing", 4, UNCHANGED).read("a") is None


DAMAGED = {
    "a flipped bit": lambda data: bytes([data[0] ^ 1]) + data[1:],
    "cut": lambda data: data[:-1],
    "nothing left": lambda data: b"",
    "longer": lambda data: data + b"x",
    "another's": lambda data: add_checksum("other name", b"contents"),
}


@pytest.mark.parametrize("how", DAMAGED)
def test_data_with_another_checksum_are_refused(how):
    data = bytes(add_checksum("name", b"contents"))
    assert strip_checksum("name", data) == b"contents"
    with pytest.raises(ValueError, match="is damaged"):
        strip_checksum("name", DAMAGED[how](data))


@seeded(2)
def test_the_least_recently_used_file_is_deleted(files, seed):
    chance = random.Random(seed)
    used = []  # the least recently used first
    for n in range(40):
        key = str(n)
        if used and chance.random() < 0.6:
            key = chance.choice(used)
            assert files.read(key) == key.encode()
            used.remove(key)
        else:
            files.write(key, key.encode())
        used = [*used, key][-files.most :]
        left = sorted(files.folder.iterdir(), key=lambda file: file.stat().st_mtime)
        assert {file.name for file in left} == {f"thing-{key}.bin" for key in used}
        for age, file in enumerate(left):  # as if a day had passed
            os.utime(file, (1e9 + age, 1e9 + age))
