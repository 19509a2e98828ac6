"""A launch's parts, one after the other: straight code between loops, and each loop over a size."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from cypresskit.chip.work import sort_distinct
from cypresskit.today.cuda_events import Action, SizeLoop, Untraceable, actions_of
from cypresskit.today.cuda_foreign import refusal

SMALL_LOOP = 64  # actions of an inner loop that becomes part of the outer one's iteration


@dataclass(frozen=True, eq=False)
class CodePart:
    """Straight code or a loop.

    Attributes
    ----------
    actions
        Those of an iteration.
    count
        The number of iterations.
    kind
        That of the loop; "" for straight code.
    begins
        Whether the kernel begins with it.
    """

    actions: list[Action]
    count: int = 1
    kind: str = ""
    begins: bool = False

    @property
    def size(self) -> int:
        """The number of actions in all iterations."""
        return self.count * len(self.actions)

    @cached_property
    def loaded_bytes(self) -> int:
        """The bytes that all iterations load, each once. Each iteration adds as many as the second
        one.
        """
        loads = [action for action in self.actions if action.kind == "load"]
        if not loads:
            return 0
        first, *others = (
            np.concatenate([np.ravel(load.place) + n * load.step for load in loads])
            for n in range(min(self.count, 2))
        )
        once = sort_distinct(first)
        added = [len(sort_distinct(np.append(once, other))) - len(once) for other in others]
        return max(load.size for load in loads) * (len(once) + (self.count - 1) * sum(added))


def parts_of(items: list) -> list[CodePart]:
    """Return the parts of a trace, in order. Of a loop whose iterations differ, those that do the
    most stand for all.
    """
    first, *others = _parts(items)
    return [replace(first, begins=True), *others]


def _parts(items: list, count: int = 1, kind: str = "") -> Iterator[CodePart]:
    straight: list[Action] = []
    for item in items:
        if isinstance(item, Action):
            straight.append(item)
            continue
        first, second = _longest(item)
        has_barrier = any(isinstance(one, Action) and one.kind == "barrier" for one in first)
        if (kind or has_barrier) and _size([item]) <= SMALL_LOOP:
            straight += _expanded(item)
            continue
        _set_steps(first, second)
        if straight:
            yield CodePart(straight, count, kind)
            straight = []
        iterations = max(round(_size([item]) / max(_size(first), 1)), 1)
        yield from _parts(first, count * iterations, item.kind)
    if straight:
        yield CodePart(straight, count, kind)


def _longest(loop: SizeLoop) -> tuple[list, list]:
    """Return the items of the iterations that do the most, and those of the iteration after their
    first: of the next ones, if they are one iteration.
    """
    sizes = [count * _size(first) for first, _, count in loop.runs]
    at = sizes.index(max(sizes))
    first, second, _ = loop.runs[at]
    return first, second or next((after for after, _, _ in loop.runs[at + 1 :]), [])


def _size(items: list) -> int:
    """Return the number of actions, those of loops with all their iterations."""
    return sum(times for _, times in actions_of(items))


def _expanded(loop: SizeLoop) -> list[Action]:
    """Return the actions of all iterations of a small loop."""
    found: list[Action] = []
    for first, second, count in loop.runs:
        outer = [getattr(one, "step", 0) for one in first]
        _set_steps(first, second)
        for iteration in range(count):
            for one, step in zip(first, outer):
                if isinstance(one, SizeLoop):
                    found += _expanded(one)
                else:
                    found.append(replace(one, place=one.place + one.step * iteration, step=step))
    return found


def _set_steps(first: list, second: list) -> None:
    """Note by how much places move from one iteration to the next. Raises ``Untraceable`` if
    fewer than half of the threads move by the same.
    """
    for one, other in zip(first, second):
        if isinstance(one, Action) and isinstance(other, Action):
            moves = np.sort(
                np.broadcast_to(other.place - one.place, one.on.shape)[one.on & other.on]
            )
            one.step = int(moves[len(moves) // 2]) if len(moves) else 0
            if 2 * np.count_nonzero(moves == one.step) < len(moves):
                raise Untraceable(f"line {one.line}: {refusal('pace')}")
        elif isinstance(one, SizeLoop) and isinstance(other, SizeLoop):
            for (inner, _, _), (later, _, _) in zip(one.runs, other.runs):
                _set_steps(inner, later)
