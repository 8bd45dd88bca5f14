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


class PluginError(Error):
    """A plugin that cannot be used. path: the file; stage: where it was refused (file, inspect, load, entry, prefix, table, keys,
    create, process, destroy, unload); what, expected, got, remedy: the parts of the line."""

    def __init__(self, path: object, stage: str, what: str, expected: str = "", got: str = "", remedy: str = "") -> None:
        super().__init__(explain(f"{stage}: {what}", str(path), expected, got, remedy))
        self.path, self.stage, self.what = str(path), stage, what
        self.expected, self.got, self.remedy = expected, got, remedy


def explain(what: str, where: str = "", expected: str = "", got: str = "", remedy: str = "") -> str:
    """One line out of its parts; parts left empty are left out."""
    text = f"{where}: {what}" if where else what
    parts = [f"expected {expected}" if expected else "", f"got {got}" if got else "", remedy]
    tail = "; ".join(p for p in parts if p)
    return " ".join(f"{text}: {tail}".split()) if tail else " ".join(text.split())
