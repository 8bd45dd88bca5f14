"""Every error the package raises on purpose. One line each: what, where, expected, got, remedy."""


class Error(Exception):
    """Base of all errors raised on purpose by dispatchlab; its text is one line fit for stderr (exit code 2)."""


class UsageError(Error):
    """An argument, name or option that cannot be used."""


class TrafficError(Error):
    """Packets, counts or a capture that cannot be used."""


class RecordingError(Error):
    """A recording that cannot be read, or that was changed by hand."""


class ChecksumError(Error):
    """Two arms computed different answers for the same packets."""


class ToolError(Error):
    """A program beside the package that is needed and missing, or that failed."""


def explain(what: str, where: str = "", expected: str = "", got: str = "", remedy: str = "") -> str:
    """One line out of its parts; parts left empty are left out."""
    text = f"{where}: {what}" if where else what
    parts = [f"expected {expected}" if expected else "", f"got {got}" if got else "", remedy]
    tail = "; ".join(p for p in parts if p)
    return " ".join(f"{text}: {tail}".split()) if tail else " ".join(text.split())
