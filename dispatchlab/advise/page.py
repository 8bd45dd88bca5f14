"""Advice as one HTML page that needs nothing but itself: figures are inside, no script, nothing fetched."""

from __future__ import annotations

import base64
from html import escape

from tabulate import tabulate

from ..recording import Recording
from .reading import Advice, advise

FIGURES = {"advice-costs": "What every arm takes of the budget", "advice-traffic": "The traffic", "tail": "Bad days"}
STYLE = """
:root { color-scheme: light dark; --ink: #1d1d1d; --paper: #fcfbf8; --faint: #5c5c5c; --line: #dedbd4; --mark: #0072b2; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e8e6e1; --paper: #181817; --faint: #a5a29b; --line: #3a3935; --mark: #56b4e9; }
}
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.15rem; color: var(--faint); font-weight: 600; margin: 0; }
.verdict { font-size: 1.5rem; line-height: 1.3; font-weight: 700; margin: .4rem 0 1rem;
  border-left: .35rem solid var(--mark); padding-left: .8rem; }
h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; border-bottom: 1px solid var(--line); padding-bottom: .2rem; }
dt { font-weight: 600; margin-top: .8rem; } dd { margin: .1rem 0 0 0; }
img { width: 100%; height: auto; border: 1px solid var(--line); border-radius: 4px; }
figure { margin: 1rem 0; } .small { color: var(--faint); font-size: .85rem; }
table { border-collapse: collapse; font-size: .9rem; }
td, th { border-bottom: 1px solid var(--line); padding: .15rem .6rem .15rem 0; text-align: left; }
"""


def page(recording: Recording) -> str:
    """The whole page as text."""
    from ..report import facts

    advice = advise(recording)
    where = tabulate(list(facts(recording)), tablefmt="html")
    parts = [
        f"<h1>dispatchlab: advice for {escape(advice.traffic)}</h1>",
        f'<p class="verdict">{escape(advice.verdict.sentence)}</p>',
        _list("It holds for", advice.verdict.conditions),
        _list("What else was seen to pay", advice.verdict.further),
        _answers(advice),
        *_figures(recording),
        f"<h2>Measured where</h2>{where}",
        f'<p class="small">Recording {advice.recording[:16]}. Every sentence and figure on this page is made from it.</p>',
    ]
    head = (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f'<link rel="icon" href="data:,"><title>{escape(advice.verdict.kind)}</title><style>{STYLE}</style></head>'
    )
    return f"{head}<body>{''.join(parts)}</body></html>\n"


def _list(title: str, lines: tuple[str, ...]) -> str:
    items = "".join(f"<li>{escape(line)}</li>" for line in lines)
    return f"<h2>{title}</h2><ul>{items}</ul>" if lines else ""


def _answers(advice: Advice) -> str:
    items = "".join(f"<dt>{escape(a.question)}</dt><dd>{escape(a.answer)}</dd>" for a in advice.answers)
    return f"<h2>The checklist</h2><dl>{items}</dl>"


def _figures(recording: Recording) -> list[str]:
    """Those that the recording holds, as data inside the page."""
    from ..figures import draw, names
    from ..figures.style import render

    found = []
    for name, title in FIGURES.items():
        if name in names(recording):
            data = base64.b64encode(render(draw(recording, name), "svg")).decode("ascii")
            found.append(f'<figure><img alt="{title}" src="data:image/svg+xml;base64,{data}"></figure>')
    return found
