"""Sets of CPUs as the kernel writes them: lists such as 0-3,8 and masks such as f,ffffffff."""

import re
from collections.abc import Iterable

MOST = 1 << 20
"""No kernel numbers more CPUs; a larger number is a broken file and not worth the memory."""
_PART = re.compile(r"(\d+)(?:-(\d+)(?::(\d+)/(\d+))?)?")
_FLAGS = ("domain", "managed_irq", "nohz")  # of isolcpus=, which some kernels print before the list
_NOTHING = ("", "(null)")


def cpus_of(text: str) -> frozenset[int]:
    """The CPUs of a list: numbers, ranges 4-7, ranges with a step 0-31:1/2 (the first 1 of every 2); words of isolcpus= before it
    are skipped; an empty text and (null) are no CPU. ValueError for anything else."""
    if text.strip() in _NOTHING:
        return frozenset()
    found: set[int] = set()
    for part in (p.strip() for p in text.split(",")):
        if part not in _FLAGS:
            found.update(_range(part))
    return frozenset(found)


def cpus_of_mask(text: str) -> frozenset[int]:
    """The CPUs of a mask: hexadecimal words of 32 bits, the highest first, with commas. ValueError for anything else."""
    words = [] if text.strip() in _NOTHING else text.strip().split(",")
    found: set[int] = set()
    for place, word in enumerate(reversed(words)):
        if not re.fullmatch(r"[0-9a-fA-F]+", word) or (len(word) > 8 and len(words) > 1) or len(words) * 32 > MOST:
            raise ValueError(f"{text[:40]!r} is no mask of CPUs")
        bits = int(word, 16)
        found.update(32 * place + bit for bit in range(bits.bit_length()) if bits >> bit & 1)
    return frozenset(found)


def list_of(cpus: Iterable[int]) -> str:
    """1, 2, 3, 8 -> "1-3,8"."""
    groups: list[list[int]] = []
    for cpu in sorted(cpus):
        if groups and cpu == groups[-1][-1] + 1:
            groups[-1].append(cpu)
        else:
            groups.append([cpu])
    return ",".join(f"{g[0]}-{g[-1]}" if len(g) > 1 else str(g[0]) for g in groups)


def _range(part: str) -> Iterable[int]:
    match = _PART.fullmatch(part)
    if match is None:
        raise ValueError(f"{part[:20]!r} is no CPU and no range of CPUs")
    first = int(match[1])
    last = int(match[2] or first)
    used, group = int(match[3] or 1), int(match[4] or 1)
    if not first <= last < MOST or not 0 < used <= group:
        raise ValueError(f"{part[:40]!r} is no range of CPUs")
    return (cpu for cpu in range(first, last + 1) if (cpu - first) % group < used)
