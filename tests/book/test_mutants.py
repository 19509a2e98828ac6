"""What `make mutants` says of a mutant that no test failed with."""

from pathlib import Path

import pytest

from tools import mutants


@pytest.mark.parametrize(
    ("passed", "unable", "word"),
    [(["a", "b"], [], "LIVES"), (["a"], [], "CAN'T TELL"), (["a", "b"], ["c"], "CAN'T TELL")],
)
def test_a_mutant_lives_only_if_each_of_its_tests_passed(passed, unable, word, monkeypatch):
    (mutant, *_), *_ = mutants.mutants(Path("cypresskit/tables.py")).values()
    run = mutants.Run(0, "", {"passed": {*passed}})
    monkeypatch.setattr(mutants, "run_tests", lambda *_, **how: run)
    assert mutants.outcome(mutant, mutants.Chosen(["a", "b"], {*unable}))[0] == word
