"""A verdict for one service: its traffic, its handlers, its rate. `measuring` makes a recording, the rest reads it.

    recording = measure(Case("capture.pcap", handlers=100, rate=3e6))
    advice = advise(recording)          # the checklist's answers and one verdict, every sentence out of a number
    page(recording)                     # the same as one HTML page
"""

from .measuring import Case, measure, parse_rate
from .page import page
from .reading import Advice, Answer, advise

__all__ = ["Advice", "Answer", "Case", "advise", "measure", "page", "parse_rate"]
