"""Of the same mistake in several lines, one of these is named, or none: no right line alone."""

import random
import re
from collections.abc import Iterator

import pytest

from cypresskit.editing.changed_lines import find_changed_fault, lead_to_fault, trace_wrong
from cypresskit.editing.dynamic_answers import judged_kernel
from cypresskit.editing.line_repairs import words_of
from cypresskit.editing.steps import STEPS, reference_kernel
from cypresskit.il import ILError

EXCHANGE = """    fence_threads_lds
    lds_store_id(0) r3.x, r4.{}
    fence_threads_lds
    lds_load_vec_id(0) r20, r3.y, r3.y
    lds_load_vec_id(0) r21, r3.z, r3.z
"""
#: The step's text with our solution, or with the lines that its lesson asks for.
RIGHT = {name: STEPS[name].solved for name in ("01a", "01b", "02", "03")}
RIGHT |= {name: STEPS[name].starter for name in ("00", "04", "05")}
RIGHT |= {name: reference_kernel(STEPS[name].like).text for name in ("06", "own")}
RIGHT["07"] = STEPS["07"].starter
for column, letter in enumerate("xyzw"):
    place = f"    ; column {column} of A\n"
    RIGHT["07"] = RIGHT["07"].replace(place, EXCHANGE.format(letter) + place)
Words = list[str]


def exchanged(one: str, other: str, words: Words) -> Words:
    """A line with two names exchanged: of operands that are read, or of what it does."""
    swap = {one: other, other: one}
    if one.isdigit():
        return [re.sub(r"\((\d)\)", lambda n: f"({swap.get(n[1], n[1])})", words[0]), *words[1:]]
    return [*words[:2], *(swap.get(word, word) for word in words[2:])]


def plants(rng: random.Random, group: list[Words]) -> Iterator[list[Words]]:
    """Lines of one kind, each with the same mistake, in all that can have it."""
    read = sorted({word for words in group for word in words[2:]})
    if len(read) > 1:
        pair = rng.sample(read, 2)
        yield [exchanged(*pair, words) for words in group]
    if group[0][0].startswith("sample"):
        yield [exchanged("0", "1", words) for words in group]
        yield [[words[0].partition("_aoffimmi")[0], *words[1:]] for words in group]
    if group[0][0] in ("mad", "dmad"):
        yield [[words[0].replace("mad", "mul"), *words[1:4]] for words in group]
    yield [
        [words[0], re.sub(r"\.([xyzw])[xyzw_]+$", r".\1___", words[1]), *words[2:]]
        for words in group
    ]
    yield [[words[0], words[1] + ".x___" * ("." not in words[1]), *words[2:]] for words in group]


def planted(step: str, rng: random.Random) -> tuple[str, set[int]] | None:
    """A step's text with the same mistake in several lines, and these lines."""
    lines = RIGHT[step].splitlines()
    kinds: dict[str, list[int]] = {}
    for at, line in enumerate(lines):
        op, *operands = words_of(line)
        if operands and operands[0] and not op.startswith(("dcl", "il_")):
            kind = re.split(r"[_(]", op)[0] + "g" * operands[0].startswith("g[")
            kinds.setdefault(kind, []).append(at)
    several = sorted(kind for kind, places in kinds.items() if places[1:])
    places = kinds[rng.choice(several)]
    group = [words_of(lines[at]) for at in places]
    made = rng.choice([*plants(rng, group)])
    changed = {at: words for at, old, words in zip(places, group, made) if old != words}
    for at, words in changed.items():
        lines[at] = f"    {words[0]} {', '.join(words[1:])}"
    return ("\n".join(lines), {at + 1 for at in changed}) if len(changed) > 1 else None


def known_of(step: str, rng: random.Random) -> str:
    """The last correct text, or the given one. Where nothing was given, either of two places may be
    at fault, such as products or stores.
    """
    return RIGHT[step] if step == "own" else rng.choice([RIGHT[step], STEPS[step].starter])


@pytest.mark.parametrize("seed", range(24))
def test_no_right_line_is_named_alone(seed):
    rng = random.Random(seed)
    while True:
        step = rng.choice([*RIGHT])
        if not (made := planted(step, rng)):
            continue
        text, wrong = made
        chosen = STEPS[step]
        try:
            seen = judged_kernel(text, chosen.file, chosen.like, scales=chosen.scales)
        except (ILError, ValueError):
            continue
        if not seen.right and not seen.error:
            break
    trace = trace_wrong(seen)
    known = known_of(step, rng)
    fault = find_changed_fault(seen, known, trace)
    for note in lead_to_fault(fault, trace, known)[:1]:
        lines = " ".join(re.findall(r"[Ll]ines? ([\d, and]+)", note.text))
        named = {*map(int, re.findall(r"\d+", lines))}
        assert not named or named & wrong, (step, note, wrong)
        assert note.line in {0, *wrong}, (step, note, wrong)


@pytest.mark.parametrize("step", ["00", "01a", "01b", "own"])
@pytest.mark.parametrize("sampler", [0, 1])
def test_textures_that_all_fetches_exchange_are_told_whatever_their_samplers(step, sampler):
    text = re.sub(
        r"resource\(([01])\)_sampler\(.\)",
        lambda fetch: f"resource({1 - int(fetch[1])})_sampler({sampler})",
        RIGHT[step],
    )
    chosen = STEPS[step]
    seen = judged_kernel(text, chosen.file, chosen.like, scales=chosen.scales)
    fault = find_changed_fault(seen, RIGHT[step], trace_wrong(seen))
    assert fault and fault.text.endswith("exchange textures 0 and 1."), fault


@pytest.mark.parametrize("rows", [(0, 1), (1, 3), (2, 0)])
def test_where_rows_are_exchanged_by_products_or_by_stores_both_are_named(rows):
    """Nobody knows which are right: either exchange makes C correct."""
    one, other = rows
    text = RIGHT["own"].replace(f"mov o{one}, r1{one}", f"mov o{one}, r1{other}")
    text = text.replace(f"mov o{other}, r1{other}", f"mov o{other}, r1{one}")
    seen = judged_kernel(text, STEPS["own"].file, STEPS["own"].like)
    fault = find_changed_fault(seen, STEPS["own"].starter, trace_wrong(seen))
    lines = text.splitlines()
    named = [lines[int(n) - 1].split()[0] for n in re.findall(r"\b\d+\b(?=[ ,])", fault.text)]
    assert {"mad", "mov"} <= {*named} and " or " in fault.text, fault
