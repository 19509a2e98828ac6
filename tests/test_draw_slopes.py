"""Then and now: lines, labels and words have the factors that they were given."""

import numpy as np
import pytest
from pages import view
from said import Rule, Said, assert_held, said

from cypresskit import draw
from cypresskit.draw.slopes import APART

FACTORS = {
    "blocks": (27.2, 6.3),
    "warps": (2.3, 3.2),
    "A transposed": (1.3, 1.0),
    "padding": (16.0, 16.5),
    "a large N": (130.3, 140.8),
    "pinned": (2.0, 6.3),
    "tensor cores": (None, 12.5),
    "bundles": (1.4, None),
}


def rules(factors: dict) -> dict[str, Rule]:
    def label(say: Said, _):
        """An end's factor, beside its idea's name."""
        side = 0 if say.where.startswith("then") else 1
        name = next(name for name in factors if name in say.text)
        return [factors[name][side]]

    def caption(say: Said, _):
        then, now = list(factors.values())[say.frame - 1]
        numbers = [part for part in (then, now) if part is not None]
        if say.frame == len(factors):
            both = [pair for pair in factors.values() if None not in pair]
            numbers += [sum(now >= 1.1 for _, now in both), len(both)]
        return numbers

    return {
        r"(.* {3})?# x( {3}.*)?": label,
        r"\w.*# x(.|\n)*": caption,
    }


@pytest.mark.parametrize("chosen", [8, 7, 1])
def test_every_number_is_a_factor(chosen):
    factors = dict(list(FACTORS.items())[:chosen])
    assert_held(draw.slopes(factors), rules(factors), frames=range(chosen + 1))


def test_lines_lead_from_then_to_now_on_one_axis():
    player = draw.slopes(FACTORS)
    sources = {r.data_source.name: r.data_source for r in player.figures[0].renderers}
    last = {t.source.name: t.frames[-1] for t in player.tracks if t.column == "y1"}
    places, logs = [], []
    for name, (then, now) in FACTORS.items():
        if then is None or now is None:
            assert f"line {name}" not in sources
            continue
        places += [sources[f"line {name}"].data["y0"][0], last[f"line {name}"][0]]
        logs += [np.log(then), np.log(now)]
    slope, start = np.polyfit(logs, places, 1)
    assert slope < 0 and np.allclose(np.polyval((slope, start), logs), places, atol=0.01)


def test_no_label_lies_on_another():
    for side in ("then", "now"):
        sources = [r.data_source for r in draw.slopes(FACTORS).figures[0].renderers]
        own = [s.data["y"] for s in sources if (s.name or "").startswith(side)]
        places = np.sort(np.concatenate(own))
        assert np.diff(places).min() > APART - 0.1


def test_nothing_of_today_is_said_before_it_is_drawn():
    player = view("slopes")
    first = {text.text for text in said(player, 0)}
    assert not [text for text in first if "today" in text and " x" in text]
    assert not any(
        np.isfinite(t.frames[0]).any() for t in player.tracks if "end 1" in t.source.name
    )


@pytest.mark.parametrize(
    "factors", [{"a": (None, None)}, {"a": (0, 1)}, {"a": (1, -2)}, {"a": (1, float("inf"))}]
)
def test_what_is_no_factor_is_rejected(factors):
    with pytest.raises(ValueError, match="two factors above 0"):
        draw.slopes(factors)
