"""Out of a recording of `advise`: the checklist's answers in order, and one verdict. Pure; every sentence comes out of a number."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from ..errors import UsageError, explain
from ..recording import Recording
from .answers import ANSWERS
from .evidence import Answer, Evidence
from .verdict import Verdict, decide

__all__ = ["Advice", "Answer", "Verdict", "advise"]


@dataclass(frozen=True)
class Advice:
    """verdict: the one line with its conditions; answers: the checklist, in order; case: what was asked; recording: its digest."""

    verdict: Verdict
    answers: tuple[Answer, ...]
    case: dict[str, Any] = field(default_factory=dict)
    traffic: str = ""
    recording: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return asdict(self)


def advise(recording: Recording) -> Advice:
    """The advice that a recording of the study `advise` holds. UsageError for another study."""
    if "advise" not in recording.extra:
        raise UsageError(explain("holds no advice", recording.study, "a recording made by dispatchlab advise"))
    evidence = Evidence(recording)
    answers = tuple(found for answer in ANSWERS if (found := answer(evidence)) is not None)
    return Advice(decide(evidence), answers, dict(evidence.case), evidence.traffic, recording.digest)
