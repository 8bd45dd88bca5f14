"""Files that come with the package: claims, traffic counts and headers, from the wheel or from the checkout it is built from."""

from pathlib import Path

_PACKAGED = Path(__file__).parent / "_data"
_CHECKOUT = Path(__file__).parent.parent / "data"


def data_folder() -> Path:
    """Where they are: inside the installed package, else beside it in a checkout."""
    return _PACKAGED if _PACKAGED.is_dir() else _CHECKOUT


def include_folder() -> Path:
    """The folder that holds dispatchlab/plugin.h."""
    packaged = Path(__file__).parent / "_include"
    return packaged if packaged.is_dir() else _CHECKOUT.parent / "csrc" / "include"


def data_files(folder: str, pattern: str) -> list[Path]:
    """Those in a folder whose names fit, sorted."""
    return sorted((data_folder() / folder).glob(pattern))
