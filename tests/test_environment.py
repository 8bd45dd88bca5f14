"""The environment tells what moves the numbers, never stops a measurement, and never names the machine."""

import getpass
import json
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from dispatchlab.environment import environment, package

BUILD = {"compiler": "gcc 12.2.0", "flags": "-O3", "abi": "1"}
CPU = "sys/devices/system/cpu"
SERVER = {
    "proc/cpuinfo": "model name\t: Big CPU\nmicrocode\t: 0xa5\nflags\t\t: fpu tsc\n\nmodel name\t: other\n",
    "proc/self/status": "Name:\tpython\nCpus_allowed:\tc\nCpus_allowed_list:\t2-3\n",
    "proc/sys/kernel/osrelease": "6.1.0\n",
    "proc/sys/kernel/randomize_va_space": "0\n",
    "sys/kernel/mm/transparent_hugepage/enabled": "always madvise [never]\n",
    "sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc\n",
    "sys/devices/system/clocksource/clocksource0/available_clocksource": "tsc hpet acpi_pm\n",
    f"{CPU}/smt/active": "0\n",
    f"{CPU}/intel_pstate/no_turbo": "1\n",
    f"{CPU}/cpu0/cpufreq/scaling_governor": "performance\n",
    f"{CPU}/cpu1/cpufreq/scaling_governor": "performance\n",
    f"{CPU}/cpu2/cache/index0/level": "1\n",
    f"{CPU}/cpu2/cache/index0/type": "Data\n",
    f"{CPU}/cpu2/cache/index0/size": "48K\n",
    f"{CPU}/cpu2/cache/index1/level": "1\n",
    f"{CPU}/cpu2/cache/index1/type": "Instruction\n",
    f"{CPU}/cpu2/cache/index1/size": "32K\n",
    f"{CPU}/cpu2/cache/index2/level": "2\n",
    f"{CPU}/cpu2/cache/index2/type": "Unified\n",
    f"{CPU}/cpu2/cache/index2/size": "2M\n",
    f"{CPU}/cpu2/cache/index3/level": "3\n",
    f"{CPU}/cpu2/cache/index3/type": "Unified\n",
    f"{CPU}/cpu2/cache/index3/size": "107520K\n",
}
SETTINGS = ("governor", "turbo", "smt", "thp", "aslr")


@pytest.fixture
def tree(tmp_path):
    """tree(changes): a server's kernel files below a folder; a change to None takes a file away."""

    def make(changes=None):
        for name, text in {**SERVER, **(changes or {})}.items():
            if text is not None:
                (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
                (tmp_path / name).write_text(text)
        return tmp_path

    return make


def of(root):
    return environment(root, build=lambda: BUILD)


def test_a_well_kept_server_is_told_in_full(tree):
    found = of(tree())
    assert {name: found[name]["state"] for name in SETTINGS} == dict.fromkeys(SETTINGS, "ok")
    assert found["cpu_model"] == "Big CPU" and found["microcode"] == "0xa5" and found["kernel"] == "6.1.0"
    assert found["caches"] == {"L1d": 49152, "L1i": 32768, "L2": 2097152, "L3": 110100480}
    assert found["cpus_allowed"] == "2-3" and found["clocksource"] == "tsc" and found["hypervisor"] is None
    assert {name: found[name] for name in BUILD} == BUILD
    assert found["unread"] == {}


@pytest.mark.parametrize(
    ("name", "file", "text", "value"),
    [
        ("governor", f"{CPU}/cpu1/cpufreq/scaling_governor", "powersave", "performance,powersave"),
        ("turbo", f"{CPU}/intel_pstate/no_turbo", "0", "on"),
        ("smt", f"{CPU}/smt/active", "1", "on"),
        ("thp", "sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never", "always"),
        ("aslr", "proc/sys/kernel/randomize_va_space", "2", "2"),
    ],
)
def test_a_setting_that_disturbs_is_bad_and_says_why(tree, name, file, text, value):
    setting = of(tree({file: text}))[name]
    assert (setting["state"], setting["value"]) == ("bad", value) and setting["why"]


def test_boost_of_other_drivers_counts_as_turbo(tree):
    gone = {f"{CPU}/intel_pstate/no_turbo": None}
    assert of(tree({**gone, f"{CPU}/cpufreq/boost": "1"}))["turbo"]["state"] == "bad"
    assert of(tree({**gone, f"{CPU}/cpufreq/boost": "0"}))["turbo"]["state"] == "ok"


@pytest.mark.parametrize("file", SERVER)
def test_any_one_file_missing_or_mad_leaves_all_the_rest(tree, file):
    for spoil in (
        lambda p: p.unlink(),
        lambda p: p.write_bytes(b"\xff\0?"),
        lambda p: (p.unlink(), p.mkdir()),
    ):
        root = tree()
        spoil(root / file)
        found = of(root)
        json.dumps(found, allow_nan=False)
        for name in SETTINGS:
            assert found[name]["why"] and (found[name]["value"] is None) == (
                found[name]["state"] == "unknown"
            )
        for name in ("cpu_model", "microcode", "kernel", "clocksource", "cpus_allowed"):
            assert found[name] is not None or found["unread"][name]
        for name, size in found["caches"].items():
            assert size is not None or found["unread"][f"caches/{name}"]
        assert str(root) not in json.dumps(found)
        if (root / file).is_dir():
            (root / file).rmdir()


def test_an_empty_tree_is_unknown_throughout(tmp_path):
    found = of(tmp_path)
    assert {found[name]["state"] for name in SETTINGS} == {"unknown"}
    assert (
        found["cpu_model"] is None and found["unread"]["cpuinfo"] == "proc/cpuinfo: No such file or directory"
    )


def test_an_arm_core_is_told_by_implementer_and_part(tree):
    info = "processor\t: 0\nBogoMIPS\t: 50.00\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n"
    assert of(tree({"proc/cpuinfo": info}))["cpu_model"] == "implementer 0x41 part 0xd0c"


@pytest.mark.parametrize(
    ("files", "kind"),
    [
        ({"sys/devices/system/clocksource/clocksource0/available_clocksource": "tsc kvm-clock"}, "kvm"),
        ({"sys/hypervisor/type": "xen\n"}, "xen"),
        ({"proc/cpuinfo": "flags\t: hypervisor\n"}, "of unknown kind"),
        (
            {"proc/cpuinfo": "flags\t: hypervisor\n", "sys/class/dmi/id/sys_vendor": "VMware, Inc.\n"},
            "VMware, Inc.",
        ),
    ],
)
def test_a_guest_knows_its_hypervisor(tree, files, kind):
    assert of(tree(files))["hypervisor"] == kind


def test_this_machine_is_told_without_its_name_its_user_or_a_folder():
    text = json.dumps(of(Path("/")))
    words = set(re.split(r"[^\w.-]+", text))
    assert not words & {socket.gethostname(), getpass.getuser()}
    for folder in (str(Path.home()), os.getcwd(), str(Path(__file__).parent), sys.prefix):
        assert folder == "/" or folder not in text


def test_the_commit_of_a_checkout_and_its_changes_show(tmp_path):
    def git(*words):
        subprocess.run(
            ["git", "-C", str(tmp_path), "-c", "user.name=n", "-c", "user.email=e", *words],
            check=True,
            capture_output=True,
            env={k: v for k, v in os.environ.items() if not k.startswith("GIT_")},
        )

    folder = tmp_path / "dispatchlab"
    folder.mkdir()
    assert package(folder)["commit"] is None
    (folder / "_commit").write_text("abc\n")
    assert package(folder)["commit"] == "abc"
    git("init")
    git("add", ".")
    git("commit", "-m", "first")
    assert len(package(folder)["commit"]) == 40
    (folder / "_commit").write_text("changed\n")
    assert package(folder)["commit"].endswith("-dirty")
