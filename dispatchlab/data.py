"""Files that come with the package: claims and traffic counts, from the wheel or from the checkout it is built from."""

from pathlib import Path

_PACKAGED = Path(__file__).parent / "_data"
_CHECKOUT = Path(__file__).parent.parent / "data"


def data_folder() -> Path:
    """Where they are: inside the installed package, else beside it in a checkout."""
    return _PACKAGED if _PACKAGED.is_dir() else _CHECKOUT


def data_files(folder: str, pattern: str) -> list[Path]:
    """Those in a folder whose names fit, sorted."""
    return sorted((data_folder() / folder).glob(pattern))
