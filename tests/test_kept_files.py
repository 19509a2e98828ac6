"""Kept files: whole, the user's own, and those that are used."""

import os
import random

import pytest

from cypresskit.kept_files import KeptFiles, sealed, unsealed


@pytest.fixture
def files(tmp_path):
    return KeptFiles(tmp_path / "cache" / "cypresskit", "thing", 4)


def test_what_is_kept_is_read_as_it_was(files):
    assert files.read("a") is None
    files.write("a", b"some\nbytes\0")
    files.write("b", b"")
    assert (files.read("a"), files.read("b")) == (b"some\nbytes\0", b"")


def test_where_there_is_no_folder_nothing_is_kept():
    nowhere = KeptFiles(None, "thing", 4)
    nowhere.write("a", b"bytes")
    assert nowhere.read("a") is None


@pytest.mark.parametrize("mode, kept", [(0o700, True), (0o755, True), (0o777, False)])
def test_a_folder_that_others_may_write_to_is_not_used(files, mode, kept):
    files.write("a", b"bytes")
    files.folder.chmod(mode)
    assert bool(files.read("a")) == kept
    files.write("b", b"bytes")
    assert len([*files.folder.iterdir()]) == 1 + kept


def test_a_linked_folder_is_not_used(files, tmp_path):
    files.write("a", b"bytes")
    linked = tmp_path / "linked"
    linked.symlink_to(files.folder)
    assert KeptFiles(linked, "thing", 4).read("a") is None


@pytest.mark.parametrize("seed", range(200))
def test_whatever_is_not_what_was_sealed_is_refused(seed):
    rng = random.Random(seed)
    contents = rng.randbytes(rng.choice((0, 1, 40)))
    data = bytearray(sealed("name", contents))
    assert unsealed("name", bytes(data)) == contents
    kind = rng.choice(("flip", "cut", "longer", "other"))
    if kind == "flip":
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    elif kind == "cut":
        del data[rng.randrange(len(data)) :]
    elif kind == "longer":
        data += rng.randbytes(1)
    with pytest.raises(ValueError, match="is damaged"):
        unsealed("other name" if kind == "other" else "name", bytes(data))


@pytest.mark.parametrize("seed", range(4))
def test_what_nobody_has_used_for_longest_goes(files, seed):
    chance = random.Random(seed)
    used: list[str] = []  # the longest unused first
    for n in range(40):
        key = str(n)
        if used and chance.random() < 0.6:
            key = chance.choice(used)
            assert files.read(key) == key.encode()
            used.remove(key)
        else:
            files.write(key, key.encode())
        used = [*used, key][-files.most :]
        kept = sorted(files.folder.iterdir(), key=lambda file: file.stat().st_mtime)
        assert {file.name for file in kept} == {f"thing-{key}.bin" for key in used}
        for age, file in enumerate(kept):  # as if a day had gone by
            os.utime(file, (1e9 + age, 1e9 + age))
