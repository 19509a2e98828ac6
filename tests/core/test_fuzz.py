"""Random programs: all engines agree on them. `make fuzz` tries new ones."""

import random
import re

from changed_texts import mistype
from sampling import seeded

import cypresskit as ck
from cypresskit.machine.checks import check
from tools.fuzz.engines import STEPS, agree
from tools.fuzz.law import timed
from tools.fuzz.programs import ARITHMETIC, random_program

#: Findings after which engines may differ: races, and faults that hide a race on the same address.
OPEN = {"race", "uninitialized", "unaligned"}
SILENT = {"race", "barrier", "uninitialized", "store outside", "endless loop"}

GROUPS = 36  # of kinds of arithmetic


@seeded(GROUPS)
def test_all_engines_agree_on_a_valid_program(seed):
    """Each with a few kinds of arithmetic, and all have all. The checks find nothing of what its
    grammar rules out.
    """
    rng = random.Random(seed)
    few = ARITHMETIC[seed % GROUPS :: GROUPS]
    text, launch = random_program(rng, statements=30, opcodes=few)
    program = ck.assemble(text)
    findings = check(program, **launch)
    assert not SILENT & {finding.kind for finding in findings}, findings
    agree(program, launch)


@seeded(2)
def test_all_engines_agree_on_a_damaged_program_or_it_is_refused(seed):
    """One after another, until there was one of each."""
    rng = random.Random(seed)
    compared = refused = 0
    while not (compared and refused):
        assert compared + refused < 40, "all have one outcome"
        text, launch = random_program(rng, statements=rng.choice((5, 15)))
        try:
            program = ck.assemble(mistype(text, rng, rng.randint(1, 3)))
            findings = check(program, **launch, max_instructions=STEPS)
        except (ck.KernelError, ValueError, TypeError) as error:  # ILError is a ValueError
            assert re.search(r":\d+: ", str(error))
            refused += 1
            continue
        agree(program, launch, defined=not OPEN & {finding.kind for finding in findings})
        compared += 1


@seeded(2)
def test_the_report_of_any_launch_obeys_the_law(seed):
    timed(random.Random(seed))
