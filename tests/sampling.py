"""Which cases a run takes: seeds of laws, rows of cases, and those that are drawn from expensive
tables.
"""

import random
import tomllib
from datetime import date
from functools import partial

import hypothesis
import pytest
from repository import ROOT

# No deadline: a first example compiles its kernel. Hypothesis draws the same examples every time:
# red means a change. New ones come with `--new`, other cases of expensive tables with each day.
hypothesis.settings.register_profile("same", deadline=None, derandomize=True, database=None)
hypothesis.settings.register_profile("new", deadline=None, database=None)
hypothesis.settings.load_profile("same")

#: Kernels that have, together, each precision, mode and convention: laws that no kernel's own text
#: could break are tried on these.
SIX = (
    "sgemm_tn",
    "dgemm_nn_buffer",
    "ddgemm_tt_nofma",
    "dgemm_tn_stream_2x8",
    "sgemm_64x64_lds",
    "sgemv_n_reduce4",
)
each_of_six = pytest.mark.parametrize("name", SIX)


#: The first seed of laws, and what shifts the draw from tables: see ``pytest_configure``.
FIRST_SEED, DAY = 0, 0


def seeded(count):
    """Run a law on so many seeds: the same in every run, others with ``--new``."""
    return pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + count))


def by_day(cases, count):
    """Return the cases of an expensive table, of which ``count``, drawn anew each day, run by day
    and the others at night.
    """
    cases = list(cases)
    chosen = random.Random(DAY).sample(range(len(cases)), min(count, len(cases)))
    made = []
    for number, case in enumerate(cases):
        values = case if isinstance(case, tuple) else (case,)
        made.append(pytest.param(*values, marks=[pytest.mark.nightly] * (number not in chosen)))
    return made


def drawn_by_day(names, cases, count, **options):
    """Run a test on the cases of an expensive table: see ``by_day``."""
    return pytest.mark.parametrize(names, by_day(cases, count), **options)


ROWS = tomllib.loads((ROOT / "tests/cases/rows.toml").read_text())


def from_rows(test=None, drawn=None):
    """Run a test on its rows in the table of its file in ``cases/rows.toml``, or on so many, drawn
    from them by the day: see ``by_day``. The first row names the arguments; what is left out at a
    row's end is None.
    """
    if test is None:
        return partial(from_rows, drawn=drawn)
    names, *rows = ROWS[test.__module__][test.__name__]
    filled = [(*row, *[None] * (len(names) - len(row))) for row in rows]
    return drawn_by_day(names, filled, drawn or len(rows))(test)


def pytest_addoption(parser):
    parser.addoption(
        "--new",
        type=int,
        metavar="SEED",
        help="run the laws on random examples alone, with those of this seed, as `make fuzz` does",
    )
    parser.addoption(
        "--day",
        type=int,
        metavar="NUMBER",
        default=date.today().toordinal(),
        help="which cases of expensive tables are drawn; by default another draw each day",
    )
    parser.addoption(
        "--accept", action="store_true", help="write what cases report into their files"
    )


def pytest_configure(config):
    global FIRST_SEED, DAY
    config.option.randomly_reset_seed = False  # a test's numbers are its own: ``same_numbers``
    DAY = config.getoption("day")
    if config.getoption("accept") and config.getoption("numprocesses", None):
        raise pytest.UsageError("--accept writes whole files: run it in one process, without -n")
    if config.getoption("new") is not None:
        FIRST_SEED = config.getoption("new")
        hypothesis.settings.load_profile("new")
        hypothesis.core.global_force_seed = FIRST_SEED


def is_random(item):
    """Whether a test draws its examples: by Hypothesis, or by a seed."""
    has_seed = "seed" in getattr(getattr(item, "callspec", None), "params", ())
    return has_seed or getattr(item.obj, "is_hypothesis_test", False)


def pytest_collection_modifyitems(items, config):
    """With ``--new``, only what is random."""
    if config.getoption("new") is not None:
        config.hook.pytest_deselected(items=[item for item in items if not is_random(item)])
        items[:] = filter(is_random, items)


def pytest_report_header(config):
    return f"Using --day={DAY}"
