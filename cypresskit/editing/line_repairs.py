"""The words of a line of IL, the repairs of one of them, and sentences on what was wrong.

A repair replaces a word by one that such lines have there, another component, or an opcode that is
taken for it; or it exchanges two words, or makes a product of a sum. No text is run here:
``changed_lines`` tries the repairs.
"""

import re
from collections.abc import Hashable, Iterator, Sequence
from itertools import product
from typing import NamedTuple

from cypresskit.il.cursor import bare_line

Words = list[str]  # the opcode, the result, and the sources
Kind = tuple[str, Hashable]  # of a repair: an opcode, and what changes
PRODUCTS = "mad", "dmad", "mul", "dmul"
ARITHMETIC = *PRODUCTS, "add", "dadd"
DOTS = "dp2", "dp3", "dp4"
#: Opcodes that are taken for each other.
CONFUSED = (
    ("ge", "lt"),
    ("break_logicalz", "break_logicalnz"),
    ("add", "iadd", "sub", "mul"),
    ("ishl", "ushr"),
    ("iand", "ior"),
)
TESTS = "ge", "lt", "break"  # how opcodes begin that test a loop
READERS = "lds_store", "break"  # their first word is read, not written
OFFSETS = ("", *map("_aoffimmi({})".format, ("1,0,0", "0,1,0", "1,1,0", "0,2,0", "1,2,0")))
REGISTER = re.compile(r"r\d")
NUMBER = re.compile(r"\d+")
NEGATED = "_neg(xyzw)"
FETCH = re.compile(r"sample_resource\(([01])\)_sampler\(\1\)")


def words_of(line: str) -> Words:
    """Return the words of a line."""
    op, _, operands = bare_line(line).partition(" ")
    return [op.lower(), *(operand.strip() for operand in operands.split(","))]


def _split(operand: str) -> tuple[str, str]:
    """Return a register, or an element of memory such as ``g[r1.x]``, and its components."""
    closed = operand.rfind("]") + 1
    name, _, components = operand[closed:].partition(".")
    return operand[:closed] + name, components


def _register(operand: str) -> str:
    return _split(operand)[0]


class LineRepair(NamedTuple):
    """A repaired line; how it was repaired, in terms that are the same for other lines, or for
    lines with which it exchanged a word; what was wrong, as the end of a sentence; and whether
    another register is written.
    """

    text: str
    kinds: tuple[Kind, Kind]
    said: str
    elsewhere: bool


def line_repairs(words: Words, lines: Sequence[Words]) -> Iterator[LineRepair]:
    """Yield the repairs of a line, the likeliest first; ``lines`` has the words of all lines."""
    for right in (*_multiply_add(words), *_repaired_words(words, lines)):
        if right != words:
            text = f"{right[0]} {', '.join(right[1:])}"
            elsewhere = _register(right[1]) != _register(words[1])
            yield LineRepair(text, kinds_of(words, right), mistake(words, right), elsewhere)


def _multiply_add(words: Words) -> list[Words]:
    """Return, for a line that multiplies, what adds its product to its own register, if it isn't
    that.
    """
    op, to, *sources = words
    if op not in ARITHMETIC or _register(to) in map(_register, sources[:2]):
        return []
    double, own = ("d", to) if op.startswith("d") else ("", _register(to))
    right = [f"{double}mad", to, *sources[:2], own]
    return [right] if right != words else []


def _repaired_words(words: Words, lines: Sequence[Words]) -> Iterator[Words]:
    """Yield the words of a line with one replaced by what such lines have there, or two exchanged,
    the likeliest first.
    """
    op, to, *sources = words
    is_double = op.startswith("d") and op not in DOTS
    letters = ("xy", "zw") if is_double else ("x", "y", "z", "w")
    is_product = op in ARITHMETIC and _register(to) not in map(_register, sources[:2])
    fetch = FETCH.match(op)
    kind = "sample" if fetch else op
    alike = [other for other in lines if other[0].startswith(kind) and len(other) == len(words)]
    if op in DOTS:
        first, second = map(_register, sources)
        yield from (["mad", to, f"{first}.{some}", second, _register(to)] for some in letters)
    opcodes = [other for group in CONFUSED if op in group for other in group]
    if op.startswith(TESTS):
        yield from ([test, to, *some] for test in opcodes for some in (sources, sources[::-1]))
    if fetch:
        other = "01".replace(fetch[1], "")
        opcodes = [op.replace(f"({fetch[1]})", f"({other})"), *(fetch[0] + at for at in OFFSETS)]
    if is_product and len(sources) == 3 and "." not in sources[1]:
        first, second = map(_register, sources[:2])
        yield from ([op, to, f"{second}.{some}", first, sources[2]] for some in letters)
    found = []
    for place in (*range(2, len(words)), 1):
        name, components = _split(words[place])
        if words[place] == to and (place > 1 or to in sources):
            continue  # it counts, or is a sum
        names = {_register(other[place]) for other in alike} - {name}
        if name.startswith("r"):
            names = {*filter(REGISTER.match, names)}
        if fetch and place == 1:
            names |= {
                _register(some) for other in lines if other[0] in PRODUCTS for some in other[2:4]
            }
        some = [components, *sorted({_split(other[place])[1] for other in alike})]
        if len(components) > 1 and not is_double:
            some[1:1] = [components[1::-1] + components[2:]]
        if place == 1 and not op.startswith(READERS):
            some += [*components.replace("_", ""), ""]
        elif is_double or len(components) < 2:
            some[1:1] = letters
            some += [""] * (is_product and not is_double)
        for n in range(2 if fetch and place == 2 else 0):
            some += [components[:n] + letter + components[n + 1 :] for letter in letters]
        for n, (other, put) in enumerate(product([name, *sorted(names)], dict.fromkeys(some))):
            changed = (other != name) + (put != components)
            found.append((changed, n, place, f"{other}.{put}".rstrip(".")))
    found += [(1, n, 0, other) for n, other in enumerate(opcodes, 4 if fetch else 0)]
    for *_, place, word in sorted(found, key=lambda each: each[:2]):
        yield [*words[:place], word, *words[place + 1 :]]


def kinds_of(words: Words, right: Words) -> tuple[Kind, Kind]:
    """Return how a line is repaired, in terms that are the same for other lines with its opcode;
    and in terms that are the same for lines with which it exchanged a word.
    """
    op, _, _ = words[0].partition("(")
    ways = _difference(words, right), _difference(right, words)
    return (op, ways[0]), (op, frozenset(ways))


def _difference(words: Words, right: Words) -> Hashable:
    """Return the first words that differ, without what others of their lines have in common."""
    if len(words) != len(right):
        return right[0]
    places = [place for place, pair in enumerate(zip(words, right)) if pair[0] != pair[1]]
    if not places:
        return ()
    if places == [0] and FETCH.match(words[0]):
        numbers = ([*NUMBER.findall(line[0]), *"000"] for line in (words, right))
        return tuple(int(number) - int(other) for number, other in zip(*numbers))
    (name, letters), (other, others) = (_split(line[places[0]]) for line in (words, right))
    changed = () if letters == others else (letters, others)
    if len(places) > 1 or other == _register(words[1]):
        return (*places, *changed)
    return (*places, *changed) if name == other else (*places, name, other, others)


def misplaced(place: int) -> str:
    """Return what is wrong in a line that belongs before another."""
    return f" is in the wrong place: it belongs right before line {place + 1}."


def mistake(words: Words, right: Words) -> str:
    """Return what is wrong in a line whose words should be others, or "" if much is."""
    op = words[0]
    places = [place for place, pair in enumerate(zip(words, right)) if pair[0] != pair[1]]
    if not places:
        return ""
    if all(line[0].startswith(TESTS) for line in (words, right)) and {*words[1:]} == {*right[1:]}:
        late = places[0] == 0 and len(places) > 1
        how = "true too late, or too early, by one iteration" if late else "the wrong way round"
        return f": the test is {how}."
    if op in (*ARITHMETIC, *DOTS) and len(words) < len(right):
        what = "adds its operands" if op.endswith("add") else "only multiplies"
        if op in DOTS:
            what = "adds up the products of components"
        return f": `{op}` {what}. A product is added to a sum by `{right[0]}`."
    if len(words) != len(right) or op.startswith("dcl"):
        return ""
    if places == [2, 3] and _register(words[2]) == _register(right[3]):
        return ": the factors of A and B are exchanged."
    if len(places) > 1:
        return ""
    (place,) = places
    wrong, good = words[place], right[place]
    name, letters = _split(wrong)
    other, others = _split(good)
    what = f"another {'address' if '[' in wrong else 'register'} belongs here"
    if place == 0 and (fetch := FETCH.match(op)):
        if good.startswith(fetch[0]):
            return " fetches another texel than belongs here: look at its offset."
        return f" fetches from texture {fetch[1]}; texture 0 is A, 1 is B."
    if place == 0:
        return f": another instruction than `{op}` belongs here."
    if place == 1 and name == other:
        held, wanted = (len(mask.replace("_", "")) or len("xyzw") for mask in (letters, others))
        what = "another component belongs here"
        if held != wanted:
            what = f"its mask has too {'few' if held < wanted else 'many'} components"
    if place == 1 and not op.startswith(READERS):
        return f" writes {wrong}; {what}."
    if place == 4 and op in ARITHMETIC and other == _register(words[1]):
        return f" adds to {wrong}, but writes {words[1]}: a sum stays in its own register."
    if wrong.replace(NEGATED, "") == good.replace(NEGATED, ""):
        what = "its sign is wrong"
    elif name == other and sorted(letters) == sorted(others):
        what = "its components are exchanged"
    elif name == other:
        what = f"all of {name} belongs here"
        if others:
            what = f"{'another' if letters else 'one'} component belongs here"
    return f" reads {wrong}; {what}."
