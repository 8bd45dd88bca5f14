"""Running the cases, each in a child process of its own, so that whatever a plugin does in one case is over with it."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import select
import signal
import time
from collections.abc import Callable

from . import optional, packets, surroundings, tables  # noqa: F401  each adds its rules
from .host import CASES, Broken, NotAsked, Plugin

MOST_SAID = 500  # characters; with JSON's escapes still less than a pipe takes at once


def perform(path: str, case: Callable[[Plugin], None], to: int) -> None:
    """In the child: one case. What it says is its last word; a child that says nothing has been ended by the plugin."""
    word: tuple[str, str] = ("holds", "")
    try:
        case(Plugin(path))
    except Broken as error:
        word = ("broken", str(error))
    except NotAsked as error:
        word = ("not asked", str(error))
    except (OSError, AttributeError) as error:
        word = ("broken", str(error))
    os.write(to, json.dumps((word[0], word[1][:MOST_SAID])).encode())
    os._exit(0)


def end(child: int) -> None:
    """The child and whatever it started."""
    for kill in (os.killpg, os.kill):
        with contextlib.suppress(ProcessLookupError):
            kill(child, signal.SIGKILL)


def judge(path: str, case: Callable[[Plugin], None], seconds: float) -> tuple[str, str]:
    """Run a case in a child process, for so long at most."""
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        os.setsid()  # so that what the plugin starts ends with it
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a crash leaves no file behind
        os.close(ours)
        null = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(null, fd)
        perform(path, case, theirs)
    os.close(theirs)
    ready, _, _ = select.select([ours], [], [], seconds)
    said = os.read(ours, 4096) if ready else b""
    os.close(ours)
    end(child)
    _, status = os.waitpid(child, 0)
    if said:
        outcome, detail = json.loads(said)
        return outcome, detail
    if not ready:
        return "broken", f"does not come back within {seconds:g} s"
    if os.WIFSIGNALED(status):
        return "broken", f"ends the process: {signal.Signals(os.WTERMSIG(status)).name}"
    return "broken", f"ends the process: exit code {os.WEXITSTATUS(status)}"


def main(arguments: list[str]) -> int:
    """PLUGIN SECONDS ALTOGETHER [CASE ...]: a line of JSON per case, the last whether all of them together came to an end in time."""
    path, seconds, altogether, *wanted = arguments
    until, unasked = time.monotonic() + float(altogether), 0
    for label, (text, case) in CASES.items():
        if wanted and label not in wanted:
            continue
        if time.monotonic() < until:
            say(label, text, *judge(path, case, float(seconds)))
        else:
            unasked += 1
            say(label, text, "not asked", "no time is left")
    text = f"all cases come to an end within {float(altogether):g} s"
    say("all-in-time", text, *(("broken", f"{unasked} were not asked") if unasked else ("holds", "")))
    return 0


def say(label: str, text: str, outcome: str, detail: str) -> None:
    print(json.dumps({"case": label, "rule": text, "outcome": outcome, "detail": detail}), flush=True)
