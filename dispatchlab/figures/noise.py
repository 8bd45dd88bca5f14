"""Figure of study `noise`: the ladder of steps, CV and mean of each, with the published figures beside it."""

from __future__ import annotations

from matplotlib.figure import Figure

from .. import wording
from ..ladder import KINDS, POST, faster, series, variation
from ..recording import Recording
from .parts import reach
from .style import FAINT, PAPER, frame, plain_log

COLOURS = {"serial": "#0072B2", "vectorised": "#D55E00", "dispatch": "#009E73"}
MARKERS = {"serial": "o", "vectorised": "s", "dispatch": "^"}


def has_noise(recording: Recording) -> bool:
    """Whether it is a ladder."""
    return bool(recording.extra.get("noise"))


def ladder(recording: Recording) -> Figure:
    """Left: CV over the repetitions. Right: time beside the untuned one. One row for each step."""
    facts = recording.extra["noise"]
    steps = [*facts["steps"], *(s for s in POST if s not in facts["steps"])]
    family = len(facts["steps"]) * len(KINDS)
    first, last = "untuned", next(s for s in reversed(facts["steps"]) if s.startswith("+") or s == "untuned")
    ends = [wording.percent(variation(series(facts, s, "serial"), family)) for s in (first, last)]
    title = f"Serial sums vary by {ends[0]} untuned and by {ends[1]} with every step"
    env = recording.environment
    note = (
        f"Intervals: 95 % for all {family} of a panel together, {len(facts['rounds'])} repetitions, each in a fresh process. "
        f"{env.get('cpu_model') or 'unknown CPU'}; {recording.created[:10]}."
    )
    aside = "open diamonds: published for another machine; rows without a mark of ours: no such knob here"
    figure, (left, right) = frame(0.42 * len(steps) + 0.8, title, note, aside=aside, ncols=2, sharey=True)
    for k, kind in enumerate(KINDS):
        raw = series(facts, first, kind)
        for row, step in enumerate(facts["steps"]):
            x, y = series(facts, step, kind), row + (k - 1) * 0.2
            for axes, e, by in ((left, variation(x, family), 100), (right, faster(x, raw, family), 1)):
                below, above = reach(e)
                axes.errorbar(
                    by * e.value, y, xerr=[[by * below], [by * above]], fmt=MARKERS[kind], color=COLOURS[kind],
                    markersize=5, label=kind if row == 0 else None,
                )  # fmt: skip
    for step, (us, cv) in POST.items():
        mark = {"color": FAINT, "marker": "D", "markerfacecolor": PAPER, "linestyle": "none"}
        left.plot(cv, steps.index(step), **mark)
        right.plot(us / POST["untuned"][0], steps.index(step), **mark)
    plain_log(left, "x", [0.03, 0.1, 0.3, 1, 3, 10, 30], ["0.03", "0.1", "0.3", "1", "3", "10", "30"])
    left.set_yticks(range(len(steps)), steps)
    left.set_ylim(len(steps) - 0.5, -0.5)
    left.set_xlabel("CV, % (log scale)")
    right.axvline(1, color=FAINT, linewidth=1)
    right.set_xlabel("time beside untuned")
    right.legend()
    return figure
