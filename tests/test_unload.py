"""What a plugin leaves behind in the process when it is unmapped, and the header as other compilers see it."""

import shutil
import subprocess
import sys
import textwrap

import pytest

import dispatchlab as dl
from dispatchlab.errors import PluginError
from dispatchlab.plugins import load, unload
from dispatchlab.plugins.building import build
from dispatchlab.plugins.loading import LEAVES_CODE

SOURCE = """
#include <dispatchlab/plugin.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
static pthread_key_t key;
static void gone(void *value) { (void)value; }
static uint32_t claimed_keys(uint16_t *keys, uint32_t capacity) { if (capacity > 0) keys[0] = 60000; return 1; }
static int32_t create(void **instance) { *instance = NULL; SETUP; return DISPATCHLAB_OK; }
static void destroy(void *instance) { (void)instance; }
static int32_t process(void *instance, const dispatchlab_view *packet, uint32_t *result) {
  (void)instance, (void)gone;
  USE;
  *result = packet->key;
  return DISPATCHLAB_OK;
}
static const dispatchlab_plugin table = {
    .magic = DISPATCHLAB_PLUGIN_MAGIC, .abi_version = DISPATCHLAB_PLUGIN_LEVEL, .struct_size = sizeof(dispatchlab_plugin),
    .oldest_host = 1, .name = "leaves", .claimed_keys = claimed_keys, .create = create, .destroy = destroy, .process = process};
DISPATCHLAB_PLUGIN_DEFINE(table)
"""
THREAD = """
    import threading
    import numpy as np
    from dispatchlab.errors import PluginError
    from dispatchlab.plugins import load, unload
    from dispatchlab.traffic.packets import PACKET

    plugin, used, end = load({path!r}), threading.Event(), threading.Event()

    def work():
        packet = np.zeros(1, PACKET)
        packet["key"] = 60000
        plugin.instance().run(packet, 0)
        used.set()
        end.wait()

    thread = threading.Thread(target=work)
    thread.start()
    used.wait()
    try:
        {unload}
        print("unmapped", flush=True)
    except PluginError as error:
        print(error, flush=True)
    end.set()
    thread.join()
    print("alive", flush=True)
"""


@pytest.fixture(scope="module")
def make(tmp_path_factory):
    """make(name, setup, use) -> the path of a plugin that does this in create and in process."""
    folder = tmp_path_factory.mktemp("leaves")

    def made(name, setup="(void)key", use="(void)0"):
        (folder / f"{name}.c").write_text(SOURCE)
        return build(folder / f"{name}.c", folder / f"{name}.so", (f"-DSETUP={setup}", f"-DUSE={use}"))

    return made


@pytest.fixture(scope="module")
def keyed(make):
    return make("keyed", "pthread_key_create(&key,gone)", "pthread_setspecific(key,(void*)1)")


def run(path, call):
    script = textwrap.dedent(THREAD).format(path=str(path), unload=call)
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)


def test_a_thread_that_will_still_run_a_destructor_finds_its_code(keyed):
    done = run(keyed, "unload(plugin)")
    told, alive = done.stdout.splitlines()
    assert "unload: the process may still call into it after it has gone" in told and "a use of pthread_key_create" in told
    assert alive == "alive" and done.returncode == 0


def test_without_that_refusal_the_process_would_die(keyed):
    done = run(keyed, "plugin.engine.unload()")
    if done.returncode == 0:
        pytest.skip("this C library keeps the destructor's code mapped")
    assert done.stdout.startswith("unmapped\n") and done.returncode < 0


def test_a_signal_handler_is_code_that_stays_known(make):
    plugin = load(make("handler", "signal(SIGUSR2,SIG_DFL)"))
    with pytest.raises(PluginError, match="a use of signal") as caught:
        unload(plugin)
    assert caught.value.stage == "unload" and "leave it mapped" in caught.value.remedy


def test_a_plugin_that_leaves_nothing_goes(make):
    plugin = load(make("clean"))
    assert not LEAVES_CODE.intersection(plugin.inspection.undefined)
    assert unload(plugin) == ""


COMPILERS = [("gcc", "c11"), ("clang", "c11"), ("gcc", "c99"), ("g++", "c++17"), ("clang++", "c++17"), ("g++", "c++11")]
PREFIX = """
#define DISPATCHLAB_PLUGIN_LEVEL {level}
#include <dispatchlab/plugin.h>
#include <stddef.h>
#define SAME(what, value) typedef char same_##what[(value) ? 1 : -1]
SAME(magic, offsetof(dispatchlab_plugin, magic) == 0);
SAME(version, offsetof(dispatchlab_plugin, abi_version) == 4);
SAME(size, offsetof(dispatchlab_plugin, struct_size) == 8);
SAME(rest, offsetof(dispatchlab_plugin, oldest_host) == 16);
SAME(whole, sizeof(void *) != 8 || sizeof(dispatchlab_plugin) == 72 + 8 * {level} - 8);
SAME(view, sizeof(void *) != 8 || sizeof(dispatchlab_view) == 24);
"""


@pytest.mark.parametrize("level", [1, 2])
@pytest.mark.parametrize(("compiler", "standard"), COMPILERS)
def test_the_header_is_the_same_to_every_compiler(tmp_path, compiler, standard, level):
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    source = tmp_path / ("header.cpp" if "++" in compiler else "header.c")
    source.write_text(PREFIX.format(level=level))
    flags = [f"-std={standard}", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only", f"-I{dl.get_include()}"]
    done = subprocess.run([compiler, *flags, str(source)], capture_output=True, text=True)
    assert not done.returncode, done.stderr
