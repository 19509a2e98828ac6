"""The words of a line of IL, the repairs of one of them, and notes on what was wrong.

A repair replaces a word by one that such lines have there, another component, or an opcode that is
taken for it; or it exchanges two words, or makes a product of a sum. No text is run here:
``changed_lines`` tries the repairs.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import chain, combinations, islice, product, zip_longest
from typing import NamedTuple

from cypresskit.diagnosis.notes import Note, note
from cypresskit.il.cursor import bare_line

Words = list[str]  # the opcode, the result, and the sources
PRODUCTS = "mad", "dmad", "mul", "dmul"
ARITHMETIC = *PRODUCTS, "add", "dadd"
#: Opcodes that are taken for each other.
CONFUSED = (
    ("ge", "lt"),
    ("break_logicalz", "break_logicalnz"),
    ("add", "iadd", "sub", "mul"),
    ("ishl", "ushr"),
    ("iand", "ior"),
    ("mad", "dmad"),
    tuple(map("breakc_relop({})".format, ("ge", "gt", "le", "lt"))),
)
TESTS = "ge", "lt", "break"  # how opcodes begin that test a loop
READERS = "lds_store", "break"  # their first word is read, not written
OFFSET = "_aoffimmi"
OFFSETS = ("", *map(f"{OFFSET}({{}})".format, ("1,0,0", "0,1,0", "1,1,0", "0,2,0", "1,2,0")))
EXCHANGES = 60  # pairs that are tried in lines of one kind
REGISTER = re.compile(r"r\d")
NUMBER = re.compile(r"\d+")
FETCH = re.compile(r"sample_resource\(([01])\)_sampler\(\d\)")  # a sampler changes nothing


def words_of(line: str) -> Words:
    """Return the words of a line."""
    op, _, operands = bare_line(line).partition(" ")
    return [op.lower(), *(operand.strip() for operand in operands.split(","))]


def _split(operand: str) -> tuple[str, str]:
    """Return a register, or an element of memory such as ``g[r1.x]``, and its components."""
    closed = operand.rfind("]") + 1
    name, _, components = operand[closed:].partition(".")
    return operand[:closed] + name, components


def register_of(operand: str) -> str:
    """Return the register of an operand, without its components."""
    return _split(operand)[0]


class LineRepair(NamedTuple):
    """A repaired line; what was wrong in it; and whether another register is written."""

    text: str
    fault: Note
    elsewhere: bool


def line_repairs(number: int, words: Words, lines: Sequence[Words]) -> Iterator[LineRepair]:
    """Yield the repairs of a line, the likeliest first; ``lines`` has the words of all lines."""
    for right in (*_multiply_add(words), *_repaired_words(words, lines)):
        if right != words:
            text = f"{right[0]} {', '.join(right[1:])}"
            elsewhere = register_of(right[1]) != register_of(words[1])
            yield LineRepair(text, mistake(number, words, right) or note("else", number), elsewhere)


def _multiply_add(words: Words) -> list[Words]:
    """Return, for a line that multiplies, what adds its product to its own register, if it isn't
    that.
    """
    op, to, *sources = words
    if op not in ARITHMETIC or register_of(to) in map(register_of, sources[:2]):
        return []
    double, own = ("d", to) if op.startswith("d") else ("", register_of(to))
    right = [f"{double}mad", to, *sources[:2], own]
    return [right] if right != words else []


def _repaired_words(words: Words, lines: Sequence[Words]) -> Iterator[Words]:
    """Yield the words of a line with one replaced by what such lines have there, or two exchanged,
    the likeliest first.
    """
    op, to, *sources = words
    is_double = op.startswith("d")
    letters = ("xy", "zw") if is_double else ("x", "y", "z", "w")
    is_product = op in ARITHMETIC and register_of(to) not in map(register_of, sources[:2])
    fetch = FETCH.match(op)
    kind = "sample" if fetch else op
    alike = [other for other in lines if other[0].startswith(kind) and len(other) == len(words)]
    opcodes = [other for group in CONFUSED if op in group for other in group]
    if op.startswith("lds_store"):
        yield [op, *sources, to]
    if op.startswith(TESTS):
        yield from ([test, to, *some] for test in opcodes for some in (sources, sources[::-1]))
    if fetch:
        opcodes = [_other_texture(op), *(fetch[0] + at for at in OFFSETS)]
    for place in (0, 1) if is_product and len(sources) == 3 else ():
        if "." not in sources[place]:  # the other factor has the component
            first, second = register_of(sources[place]), register_of(sources[1 - place])
            # A texel has as many numbers as a sum: any other component may hold a 1
            count = len(_split(to)[1].replace("_", "")) or len(letters)
            yield from ([op, to, f"{first}.{some}", second, sources[2]] for some in letters[:count])
    found = []
    for place in (*range(2, len(words)), 1):
        name, components = _split(words[place])
        if words[place] == to and (place > 1 or to in sources):
            continue  # it counts, or is a sum
        names = {register_of(other[place]) for other in alike} - {name}
        if name.startswith("r"):
            names = {*filter(REGISTER.match, names)}
        if fetch and place == 1:
            names |= {
                register_of(some) for other in lines if other[0] in PRODUCTS for some in other[2:4]
            }
        if op in ("add", "dadd") and place > 1:
            names |= {register_of(to)} - {name}
        if op.startswith("break") and place == 1:
            names |= {register_of(other[1]) for other in lines if other[0].startswith(TESTS)}
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


def _other_texture(op: str) -> str:
    """Return a fetch from the other one of textures 0 and 1."""
    fetch = FETCH.match(op)
    name = "sample_resource({0})_sampler({0})"
    return FETCH.sub(name.format(1 - int(fetch[1])), op) if fetch else op


def exchanges(lines: Sequence[Words]) -> Iterator[tuple[str, list[Words]]]:
    """Yield two textures, or words that lines of one kind read, such as "r2.x and r2.y", with the
    lines in which these are exchanged: first those where lines differ in two words only.
    """
    if all(FETCH.match(words[0]) for words in lines):
        yield "textures 0 and 1", [[_other_texture(op), *words] for op, *words in lines]
    places = [{*filter(None, place)} for place in zip_longest(*(words[2:] for words in lines))]
    choices = [*sorted(places, key=len), set().union(*places)]
    pairs = chain.from_iterable(combinations(sorted(choice), 2) for choice in choices)
    for pair in islice(dict.fromkeys(pairs), EXCHANGES):
        swap = dict(zip(pair, pair[::-1]))
        yield (
            " and ".join(pair),
            [[*words[:2], *(swap.get(word, word) for word in words[2:])] for words in lines],
        )


def likewise(words: Words, right: Words, other: Words) -> Words:
    """Return another line with the change that makes ``words`` right, or as it is if it hasn't this
    mistake.
    """
    if len(words) != len(other):
        return other
    if len(words) != len(right):
        return next(iter(_multiply_add(other)), other) if other[0] == words[0] else other
    made = [*other]
    for place in _different(words, right):
        (wrong_name, wrong_part), (right_name, right_part), (name, part) = (
            _split(line[place]) if place else line[0].partition(OFFSET)[::2]
            for line in (words, right, other)
        )
        if words[place] != other[place] and (wrong_name != right_name or part != wrong_part):
            return other
        mark = "." if place else OFFSET
        name = right_name if name == wrong_name else name
        made[place] = f"{name}{mark}{right_part}".removesuffix(mark)
        if place > 1 and right[place] == register_of(words[1]):  # a sum's own register
            made[place] = register_of(other[1])
    return made


def _different(words: Words, right: Words) -> list[int]:
    """Return the places of the words that differ."""
    return [place for place, (one, other) in enumerate(zip(words, right)) if one != other]


def _in_order(words: Words, right: Words) -> Words:
    """Return a right line with its factors exchanged, if it is then more like the other line: first
    by its registers.
    """

    def far(line: Words) -> tuple[int, int]:
        names = ([*map(register_of, each[2:4])] for each in (words, line))
        return len(_different(*names)), len(_different(words, line))

    turned = [*right[:2], *right[3:1:-1], *right[4:]]
    are_products = words[0] in PRODUCTS and right[0] in PRODUCTS
    return turned if are_products and far(turned) < far(right) else right


def mistake(number: int, words: Words, right: Words) -> Note | None:
    """Return what is wrong in a line whose words should be others; None if nothing or much is."""
    op = words[0]
    right = _in_order(words, right)
    places = _different(words, right)
    if all(line[0].startswith(TESTS) for line in (words, right)) and {*words[1:]} == {*right[1:]}:
        relations = {line[0][-3:-1] for line in (words, right)}
        if places[:1] != [0]:
            return note("operands", number) if places else None
        late = len(places) > 1 or relations in ({"ge", "gt"}, {"le", "lt"})
        return note("late" if late else "turned", number)
    if op in ARITHMETIC and len(words) < len(right):
        is_sum = register_of(right[-1]) == register_of(right[1])
        if not (is_sum or {*words[2:]} < {*right[2:]}):
            return None
        kind = "adds" if op.endswith("add") else "only multiplies"
        return note(kind, number, op=op, by=right[0] if is_sum else "")
    if len(words) != len(right) or op.startswith("dcl"):
        return None
    if places in ([1, 2], [2, 3]) and [words[n] for n in places[::-1]] == [
        right[n] for n in places
    ]:
        return note("operands", number)
    if places == [2, 3] and ("." in words[2]) != ("." in right[2]):
        return note("other factor", number)
    if len(places) != 1:
        return None
    (place,) = places
    if place == 0:
        return _other_instruction(number, op, right[0])
    wrong, good = words[place], right[place]
    needs = _needs(op, place, wrong, good)
    adds = place == 4 or op in ("add", "dadd")
    to = register_of(words[1])
    if needs == "register needed" and adds and op in ARITHMETIC and register_of(good) == to:
        return note("own sum", number, wrong=wrong, to=words[1])
    is_read = place > 1 or op.startswith(READERS)
    what = Note(needs, values={"name": register_of(wrong)})
    return note("wrong read" if is_read else "wrong write", number, wrong=wrong, needs=what)


def _other_instruction(number: int, op: str, right: str) -> Note:
    """Return the note on an instruction that should be another one."""
    fetch = FETCH.match(op)
    if not fetch:
        return note("instruction", number, op=op)
    if right.startswith(fetch[0]):
        return note("offset" if op != fetch[0] else "no offset", number)
    return note("texture", number, texture=fetch[1])


def _needs(op: str, place: int, wrong: str, good: str) -> str:
    """Return the kind of note on what belongs in place of a wrong operand."""
    (name, letters), (other, others) = _split(wrong), _split(good)
    if place > 1 and wrong.partition("_")[0] == good.partition("_")[0]:
        return "no modifier" if "_" in wrong else "modifier"
    if name != other:
        return "address needed" if wrong.startswith("g[") else "register needed"
    if place == 1 and not op.startswith(READERS):
        held, wanted = (len(mask.replace("_", "")) or len("xyzw") for mask in (letters, others))
        if held == wanted:
            return "component needed"
        return "more needed" if held < wanted else "fewer needed"
    if sorted(letters) == sorted(others):
        return "other order"
    if op.startswith("d") and op in ARITHMETIC and len(letters) == 1 < len(others):
        return "two needed"
    if not others:
        return "all needed"
    if others[1:] and not letters:
        return "components needed"
    return "component needed" if letters else "one component needed"
