"""Rules of a reader's own that assign the banks of the texture cache and of the LDS."""

import math
import random
import tomllib
from dataclasses import replace

import numpy as np
import pytest
from repository import ROOT
from sampling import seeded

import cypresskit as ck
from cypresskit.compiler import compile
from cypresskit.devices import HD5870
from cypresskit.isolated import plain
from cypresskit.timing import simulate
from cypresskit.trace import tracing
from cypresskit.trace.memory_layout import MemoryLayout
from cypresskit.trace.tracing import trace_wavefronts
from tools.fuzz import law

ARGUMENTS = {"texture_bank": 2, "lds_bank": 1}


def any_rule(name, seed):
    """A rule that nobody wrote: sums of its arguments' shifts and products, or any table."""
    rng = random.Random(f"{name} {seed}")
    banks = {"texture_bank": 4, "lds_bank": 32}[name]
    used = rng.choice([1, banks - 1, banks])
    if rng.random() < 0.3:
        table = [rng.randrange(used) for _ in range(rng.choice([5, 8, 16, 64]))]
        return lambda *at: table[sum(at) % len(table)]
    terms = [(rng.randrange(4), rng.randrange(1, 8)) for _ in range(ARGUMENTS[name] * 2)]

    def rule(*at):
        return sum((at[n % len(at)] >> s) * f for n, (s, f) in enumerate(terms)) % used

    return rule


def any_board(seed):
    return replace(HD5870, **{name: any_rule(name, seed) for name in ARGUMENTS})


@seeded(4)
def test_units_are_busy_for_the_clocks_that_any_rule_gives(seed):
    """In a program of any accesses."""
    shape, board = law.accesses(random.Random(seed)), any_board(seed)
    report = simulate(shape, device=board)
    assert law.check(compile(shape.program, board), shape, report) == []


@pytest.mark.parametrize("kernel", ["dgemm_nn", "sgemm_tn_compute", "sgemm_64x64_lds", "sgemm_nn"])
def test_rules_that_say_what_the_chip_does_change_nothing(kernel):
    rules = {"texture_bank": lambda x, y: x % 4, "lds_bank": lambda w: w % 32}
    plain, same = (
        simulate(kernel, 192, k=64, device=b) for b in (HD5870, replace(HD5870, **rules))
    )
    assert (same.clocks, same.busy, same.hits) == (plain.clocks, plain.busy, plain.hits)


@seeded(2)
@pytest.mark.parametrize("kernel", ["dgemm_nn", "sgemm_64x64_lds"])
def test_loops_are_extrapolated_with_a_rule_as_they_run(kernel, seed, monkeypatch):
    board, made = any_board(seed), ck.kernels[kernel]
    shape, code = made.shape(64, 64, 96, 1.0, 0.0), compile(made.program)

    def totals():
        paths = trace_wavefronts(code, MemoryLayout(shape, board), np.arange(1))
        return law.traced(paths, board.bundle_clocks).tolist()

    looked_ahead = totals()
    monkeypatch.setattr(tracing, "can_join", lambda code, start: False)
    assert totals() == looked_ahead


@pytest.mark.parametrize("name", ARGUMENTS)
def test_an_answer_that_is_no_bank_is_refused_with_its_question(name):
    banks = {"texture_bank": "texture_banks", "lds_bank": "lds_banks"}[name]
    good, asked = getattr(HD5870, banks), (5, 3)[: ARGUMENTS[name]]
    for answer in (good, -1, 1.5, math.nan, None, "1", True, 10**400):

        def rule(*at, answer=answer):
            return answer if at == asked else 0

        with pytest.raises(ValueError) as refused:
            replace(HD5870, **{name: rule})
        question = ", ".join(map(str, asked))
        assert str(refused.value).startswith(f"HD 5870: {name}({question}) = "), answer
        assert f"a whole number from 0 to {good - 1} ({banks} = {good})" in str(refused.value)


def test_boards_with_equal_rules_are_equal_and_are_plain_data():
    one, other = (
        replace(HD5870, texture_bank=rule)
        for rule in (lambda x, y: (x + y // 4) % 4, lambda x, y: (x % 4 + (y >> 2)) & 3)
    )
    assert one == other != HD5870 and hash(one) == hash(other)
    assert plain.decode(plain.encode(one)) == one, "an answer to an exercise keeps its rule"
    assert replace(one, texture_bank=()) == HD5870


ANSWERS = tomllib.loads((ROOT / "tests/answers/l05.toml").read_text())


@pytest.mark.parametrize("rule", ANSWERS["check_bank"]["right"])
def test_the_chip_takes_each_rule_that_the_check_takes(rule):
    """Whole floats as well, and arrays of one number; and a table as the function."""
    bank = eval(f"lambda x, y: {rule}", {"np": np})
    board = replace(HD5870, texture_bank=bank)
    assert len(board.texture_bank) > 1
    table = tuple(tuple(bank(x, y) for x in range(16)) for y in range(16))
    assert replace(HD5870, texture_bank=table) == board
