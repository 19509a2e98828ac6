"""The race check finds a race in exactly those traces that have one: random traces against every
pair of accesses.
"""

from itertools import combinations

import numpy as np
import pytest
from sampling import seeded

import cypresskit as ck
from cypresskit.machine.checks.findings import Naming
from cypresskit.machine.checks.races import RaceCheck
from cypresskit.machine.launch import prepare
from cypresskit.machine.observer import BarrierEvent, MemoryEvent

ACCESSES = "mov g[r0.x], r0\n" + "mov r1, g[r0.x]\n" * 3
FENCES = "fence_threads_memory\nfence_threads_lds\nfence_memory\n"
LDS = "dcl_lds_id(0) 16\n" + "lds_store_id(0) r0.x, r0.x\n" + "lds_load_id(0) r1, r0.x\n" * 3
PROGRAMS = {
    "groups of 3": (f"il_cs_2_0\ndcl_num_thread_per_group 3\n{ACCESSES}{FENCES}end", 9),
    "pixels": (f"il_ps_2_0\n{ACCESSES}fence_memory\nend", (2, 3)),
    "LDS": (f"il_cs_2_0\ndcl_num_thread_per_group 4\n{LDS}{FENCES}end", 8),
}


@pytest.mark.parametrize("name", PROGRAMS)
@seeded(4)
def test_a_race_is_found_where_there_is_one(name, seed):
    text, domain = PROGRAMS[name]
    program = ck.assemble(text)
    space = "lds" if name == "LDS" else "global"
    memory = np.zeros((4, 4), np.float32) if space == "global" else None
    launch = prepare(program, domain, global_memory=memory)
    size = program.group if program.mode == "compute" else 1
    items, group = launch.shape.items, np.arange(launch.shape.items) // size
    random, outcomes = np.random.default_rng(seed), []
    for _ in range(200):
        check = RaceCheck(Naming(launch, {}, {}, None))
        epochs, accesses = np.zeros(items, int), []
        for _ in range(random.integers(3, 8)):
            at = int(random.integers(len(program.body)))
            i = program.body[at]
            if i.op.kind == "fence":
                active = np.isin(group, random.integers(0, group.max() + 1, 2))
                check.barrier(BarrierEvent(at, active))
                if i.controls.threads and (i.controls.lds if space == "lds" else i.controls.memory):
                    epochs += active
                continue
            active, places = (
                np.isin(np.arange(items), random.integers(0, items, 2)),
                random.integers(0, 2, items),
            )
            store = at == 0
            element = places * 4 if space == "lds" else places
            check.memory(MemoryEvent(at, active, space, store, element, (0,), np.ones(items, bool)))
            where = places + 10 * group if space == "lds" else places
            accesses += [(where[n], n, epochs[n], store) for n in np.flatnonzero(active)]
        race = any(
            place == other_place
            and n != m
            and (store or other_store)
            and (group[n] != group[m] or epoch == other)
            for (place, n, epoch, store), (other_place, m, other, other_store) in combinations(
                accesses, 2
            )
        )
        assert bool(check.found) == race, (accesses, list(map(str, check.found.values())))
        outcomes.append(race)
    assert 10 < sum(outcomes) < 165


@pytest.mark.parametrize("apart", [1, 64])
def test_a_race_happens_to_run_in_step_within_a_wavefront(apart):
    text = f"""il_cs_2_0
dcl_num_thread_per_group 128
dcl_literal l0, {apart}, 0, 0, 0
ixor r0, vTidInGrpFlat, l0.xxxx
mov g[r0.x], r0
mov r1, g[vTidInGrpFlat.x]
mov g[r0.x+128], r1
end"""
    memory = np.zeros((256, 4), np.float32)
    (race,) = ck.check(ck.assemble(text), 128, global_memory=memory)
    assert ("this chip happens to run them in lockstep" in race.advice) == (apart == 1)
