"""Study `devirtualization`: one virtual call site, built in the ways that let a compiler see more; what became of the call.

Nothing is timed. The probes are C++ because they are about C++; each is compiled here and read back from its machine code.
"""

from __future__ import annotations

from ..devirtualize import COMPILERS, WAYS, Built, build
from ..errors import ToolError
from ..measure import record
from ..recording import Recording
from .options import Options


def run(options: Options) -> Recording:
    """Every way with every compiler that is here; a line for each compiler that is not."""
    built: list[Built] = []
    missing: list[str] = []
    for compiler in COMPILERS:
        for way in WAYS:
            try:
                built.append(build(way, compiler))
            except ToolError as error:
                missing.append(str(error))
    missing = list(dict.fromkeys(missing))
    facts = {"devirtualization": [b.document() for b in built], "devirtualization_missing": missing}
    return record("devirtualization", [], seed=options.seed, cpu=options.pinned, **facts)
