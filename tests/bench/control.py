"""How often the control of the study `mechanism` reads zero: python tests/bench/control.py [RUNS] [SECONDS]

direct-call calls one handler whatever comes, so hot and mixed must cost it the same. The intervals of all contrasts of a run hold
together with 95 %; a sound machine passes 18 of 20 runs and more. Exit code 1 when it does not.
"""

import sys

from dispatchlab import studies
from dispatchlab.mechanisms import CONTROL, contrasts


def main(runs: int = 20, seconds: float = 20.0) -> int:
    """A line for each run, and how many read zero."""
    good = 0
    for seed in range(runs):
        found = contrasts(studies.run("mechanism", quick=True, budget=seconds, seed=seed).measurements[0])
        controls = [c for c in found if c.arm == CONTROL]
        good += all(c.control_ok for c in controls)
        told = "  ".join(f"{c.body} {c.change.value:+.3f} [{c.change.low:+.3f}, {c.change.high:+.3f}]" for c in controls)
        print(f"{seed + 1:3}  {told}  {'zero' if all(c.control_ok for c in controls) else 'NOT ZERO'}", flush=True)
    print(f"{good} of {runs} runs read zero")
    return 0 if good >= 0.9 * runs else 1


if __name__ == "__main__":
    sys.exit(main(*(kind(text) for kind, text in zip((int, float), sys.argv[1:], strict=False))))
