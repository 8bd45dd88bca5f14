"""What a C++ boundary does silently, seen here: the reasons why the boundary of plugins is C."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from pathlib import Path
from types import ModuleType

import pytest

if not sys.platform.startswith("linux"):
    pytest.skip("the probes are about the dynamic linker of Linux", allow_module_level=True)


def module() -> ModuleType:
    spec = importlib.util.spec_from_file_location("probes", Path(__file__).parent / "probes" / "probes.py")
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    sys.modules["probes"] = made
    spec.loader.exec_module(made)
    return made


@pytest.fixture(scope="module", params=["g++", "clang++"])
def seen(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], str]:
    """What every probe saw, by probe and how it was built."""
    if shutil.which(request.param) is None:
        pytest.skip(f"{request.param} is not installed here")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CXX", request.param)
        return {(s.probe, s.how): s.seen for s in module().everything(tmp_path_factory.mktemp("probes"))}


def test_a_runtime_that_is_linked_in_and_hidden_really_is_another(seen) -> None:
    """Linked in alone is not enough: the dynamic linker still finds the process's operator new first."""
    assert "operator new shared" in seen["two heaps", "runtime shared"]
    assert "operator new two" in seen["two heaps", "runtime linked in and hidden"]


def test_inline_functions_merge_where_symbols_are_global_and_not_where_they_are_hidden(seen) -> None:
    assert "function merged" in seen["ODR merge", "default visibility, RTLD_GLOBAL"]
    assert seen["ODR merge", "hidden, RTLD_GLOBAL"] == "function own, static own"
    assert "function own" in seen["ODR merge", "default visibility, RTLD_LOCAL"]


def test_a_unique_static_merges_even_where_everything_else_is_local(seen) -> None:
    """STB_GNU_UNIQUE, which g++ gives to statics of inline functions, ignores RTLD_LOCAL."""
    if ("ODR merge", "no unique symbols, RTLD_LOCAL") not in seen:
        assert "static own" in seen["ODR merge", "default visibility, RTLD_LOCAL"], "clang makes no unique symbols"
        return
    assert "static merged" in seen["ODR merge", "default visibility, RTLD_LOCAL"]
    assert "static own" in seen["ODR merge", "no unique symbols, RTLD_LOCAL"]


def test_an_exception_needs_unwind_tables_all_the_way_and_a_shim_needs_nothing(seen) -> None:
    assert seen["exceptions", "straight into a C++ host"] == "caught from the plugin"
    assert seen["exceptions", "through a frame of C with unwind tables"] == "caught from the plugin"
    assert seen["exceptions", "through a frame of C without them"] == "the process ends: SIGABRT"
    assert seen["exceptions", "stopped by the plugin's own shim"] == "contained -1"


def test_one_class_can_be_two_types_by_address_and_still_be_cast(seen) -> None:
    """The runtime compares names where addresses differ, so the folklore's failing dynamic_cast does not happen here."""
    assert seen["type identity", "default visibility, RTLD_LOCAL"] == "type_info shared, dynamic_cast succeeds"
    assert seen["type identity", "default visibility, -Bsymbolic, RTLD_LOCAL"].startswith("type_info two")
    assert all(v.endswith("succeeds") for (probe, _), v in seen.items() if probe == "type identity")


def test_the_abi_of_strings_fails_aloud_when_linked(seen) -> None:
    values = [v for (probe, _), v in seen.items() if probe == "std::string ABI"]
    assert values == ["refused by the linker: undefined reference"]
