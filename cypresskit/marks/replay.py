"""A contest's winner on the chip, as a page. It needs Bokeh."""

from dataclasses import replace

from cypresskit.draw import chip as draw_chip
from cypresskit.draw.shown import scripts
from cypresskit.isolated import Lost, Raised, call
from cypresskit.isolated.process import CallLimits, Family
from cypresskit.teach.l12_contest import checks as contest
from cypresskit.teach.leaderboard import MEGABYTES, SECONDS, read

N = 1024  # at which a winner plays


def replay(text: str, file: str, n: int) -> str:
    """A page on which the right entry in ``text`` plays on the chip, at n x n x n."""
    entry, chip = read(text, file)
    report = contest.timed(entry, n, chip, exact=True)
    player = draw_chip(replace(report, kernel=entry.name))
    return player.page(f"<script>{scripts()}</script>")


def replayed(text: str, file: str, n: int = N) -> str:
    """The page of ``replay``, made in a process of its own; "" if that fails."""
    limits = CallLimits(SECONDS, 4 * SECONDS, MEGABYTES)
    family = Family()
    try:
        return str(
            call("cypresskit.marks.replay", "replay", text, file, n, limits=limits, family=family)
        )
    except (Lost, Raised, OSError):
        return ""
    finally:
        family.end()
