"""Determine which channels a virtual register may take, given its group and its pair.

The members of a ``group`` share a register, so each takes a channel of its own. A ``pair`` holds
the two words of a double in adjacent channels, xy or zw.
"""

from collections.abc import Iterable
from itertools import permutations

from cypresskit.compiler.ir import VirtualRegister

Channels = dict[VirtualRegister, int]


def find_free_channels(vreg: VirtualRegister) -> list[int]:
    """Return the channels that a virtual register may still take."""
    if vreg.channel is not None:
        return [vreg.channel]
    return [c for c in range(4) if vreg.allowed >> c & 1 and can_join({vreg: c})]


def choose_channel(vreg: VirtualRegister, channel: int) -> None:
    """Choose a virtual register's channel; its pair gets the adjacent one."""
    vreg.channel = channel
    if vreg.pair is not None and vreg.pair.channel is None:
        vreg.pair.channel = channel ^ 1


def can_join(wish: Channels, joined: tuple[VirtualRegister, ...] = ()) -> bool:
    """Return whether the keys of ``wish`` can take these channels, and leave suitable ones to their
    pairs and groups. ``joined`` are treated as one group.
    """
    wish = dict(wish)
    for vreg, channel in list(wish.items()):
        if vreg.pair is not None and wish.setdefault(vreg.pair, channel ^ 1) != channel ^ 1:
            return False
    for vreg, channel in wish.items():
        decided_otherwise = vreg.channel is not None and vreg.channel != channel
        if decided_otherwise or not vreg.allowed >> channel & 1:
            return False
    groups = {joined if vreg in joined else vreg.group for vreg in wish}
    return all(_can_assign(members, wish) for members in groups if members)


def join_groups(vregs: list[VirtualRegister], channels: list[int | None] | None = None) -> bool:
    """Join virtual registers, and the groups that they are in, into one group, which shares a
    register.

    Parameters
    ----------
    vregs
        The virtual registers.
    channels
        The channel of each; None leaves one open.

    Returns
    -------
    Whether they can share a register; if not, nothing is changed.
    """
    fixed = {vreg: c for vreg, c in zip(vregs, channels or ()) if c is not None}
    members = tuple(dict.fromkeys([member for vreg in vregs for member in vreg.group or [vreg]]))
    if len(set(vregs)) < len(vregs) or len(members) > 4:
        return False

    # A preloaded register has a fixed number, which a pair might not get.
    preloaded = {member.fixed for member in members if member.fixed is not None}
    if len(preloaded) > (0 if any(member.pair for member in members) else 1):
        return False

    joined = members if len(members) > 1 else ()
    if not (_can_assign(members, fixed) and can_join(fixed, joined)):
        return False
    for member in joined:
        member.group = joined
    for vreg, channel in fixed.items():
        choose_channel(vreg, channel)
    return True


def _can_assign(members: Iterable[VirtualRegister], wish: Channels) -> bool:
    """Return whether each member of a group finds a channel of its own; those in ``wish`` take the
    one given there.
    """
    given = {vreg: wish.get(vreg, vreg.channel) for vreg in members}
    taken = [channel for channel in given.values() if channel is not None]
    if len(set(taken)) < len(taken):
        return False

    free = [channel for channel in range(4) if channel not in taken]
    undecided = [vreg for vreg, channel in given.items() if channel is None]
    for order in permutations(free, len(undecided)):
        chosen = given | dict(zip(undecided, order))
        if all(_fits(vreg, chosen) for vreg in undecided):
            return True
    return False


def _fits(vreg: VirtualRegister, chosen: dict[VirtualRegister, int | None]) -> bool:
    """Return whether a virtual register may take its ``chosen`` channel, and its pair the adjacent
    one.
    """
    channel = chosen[vreg]
    if channel is None or not vreg.allowed >> channel & 1:
        return False
    if vreg.pair is None:
        return True
    return chosen.get(vreg.pair, vreg.pair.channel) in (None, channel ^ 1)
