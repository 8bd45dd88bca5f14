"""Build of dispatchlab._engine: one abi3 extension from csrc/.

The core (csrc/core) is compiled first, as plain C11 and without Python's include path, so that an #include <Python.h>
there fails to build. Only csrc/binding sees Python. Switches, all through the environment:

  DISPATCHLAB_SANITIZE=address,undefined   build with these sanitizers (-O1 -g)
  DISPATCHLAB_WERROR=1                     warnings are errors
  CC=clang                                 another compiler
"""

import os
import shlex
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py

HERE = Path(__file__).parent
CORE_INCLUDES = ["csrc/include", "csrc/core", "csrc/core/arms", "csrc/core/threads", "csrc/core/costs"]
FLAGS = ["-std=c11", "-O3", "-g0", "-fPIC", "-fvisibility=hidden", "-Wall", "-Wextra", "-fno-lto", "-D_GNU_SOURCE"]
# Handlers must stay distinct and in the order they are written: identical-code folding and reordering would
# change what the placement axis measures. Each flag is used where the compiler knows it.
# Straight-line vectorising and the second scheduling pass take nine tenths of the time gcc needs for the stamped handlers and
# find nothing: a handler is a body as it is written.
# Body branchy is written in the order in which its pieces are to stand; compilers would straighten its jumps out.
STAMP_FLAGS = [
    ["-fno-tree-slp-vectorize"],
    ["-fno-schedule-insns2"],
    ["-fno-reorder-blocks"],
    ["-fno-reorder-blocks-and-partition"],
    ["-fno-align-jumps"],
    ["-fno-align-labels"],
    ["-mllvm", "-disable-block-placement"],
]
OPTIONAL_FLAGS = [["-fno-ipa-icf"], ["-fno-toplevel-reorder"], ["-fno-semantic-interposition"]]


def sources(folder: str) -> list[str]:
    """Every .c file below folder, relative to the project, in a fixed order."""
    return sorted(str(p.relative_to(HERE)) for p in (HERE / folder).rglob("*.c"))


def known(compiler: list[str], flags: list[list[str]]) -> list[str]:
    """Those of flags that the compiler accepts."""

    def accepts(flag: list[str]) -> bool:
        probe = [*compiler, "-Werror", *flag, "-x", "c", "-c", "-", "-o", os.devnull]
        return subprocess.run(probe, input="int dl;", capture_output=True, text=True).returncode == 0

    return [word for flag in flags if accepts(flag) for word in flag]


def newer_than_its_sources(obj: Path) -> bool:
    """Whether the object is there and newer than every file that its compiler said it was made from."""
    made_from = obj.with_suffix(".d")
    if not (obj.exists() and made_from.exists()):
        return False
    files = [HERE / name for name in made_from.read_text().replace("\\\n", " ").split()[1:]]
    return all(file.exists() and file.stat().st_mtime < obj.stat().st_mtime for file in files)


class build_engine(build_ext):
    """Compile the core without Python's headers, in parallel, then the binding, then link."""

    def build_extensions(self) -> None:
        compiler = shlex.split(os.environ.get("CC", "cc"))
        flags = self.flags(compiler)
        ext = self.extensions[0]
        out = Path(self.build_temp) / "core"
        jobs = [(src, out / (src.replace("/", "_")[:-2] + ".o")) for src in sources("csrc/core")]
        out.mkdir(parents=True, exist_ok=True)

        stamp_flags = known(compiler, STAMP_FLAGS)

        def compile_one(job: tuple[str, Path]) -> str:
            src, obj = job
            extra = stamp_flags if "/stamps/" in src else []
            cmd = [*compiler, *flags, *extra, *[f"-I{i}" for i in CORE_INCLUDES], "-MMD", "-c", src, "-o", str(obj)]
            how = obj.with_suffix(".cmd")
            if how.exists() and how.read_text() == shlex.join(cmd) and newer_than_its_sources(obj):
                return str(obj)
            done = subprocess.run(cmd, cwd=HERE, capture_output=True, text=True)
            if done.returncode:
                raise SystemExit(f"{shlex.join(cmd)}\n{done.stderr}")
            if done.stderr:
                print(done.stderr)
            how.write_text(shlex.join(cmd))
            return str(obj)

        out = out.absolute()
        jobs = [(src, obj.absolute()) for src, obj in jobs]
        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            ext.extra_objects = list(pool.map(compile_one, jobs))
        text = " ".join(shlex.quote(f) for f in flags)
        version = subprocess.run([*compiler, "--version"], capture_output=True, text=True).stdout.splitlines()[0]
        ext.extra_compile_args = flags
        self.force = True  # setuptools does not look at the age of the objects
        ext.define_macros += [("DL_BUILD_FLAGS", f'"{text}"'), ("DL_BUILD_COMPILER", f'"{version}"')]
        ext.extra_link_args = [f for f in flags if f.startswith("-fsanitize")] + ["-lpthread", "-ldl"]
        super().build_extensions()

    @staticmethod
    def flags(compiler: list[str]) -> list[str]:
        """The fixed flags, less those this compiler does not know, plus what the switches ask for."""
        flags = [*FLAGS, *known(compiler, OPTIONAL_FLAGS)]
        if sanitize := os.environ.get("DISPATCHLAB_SANITIZE"):
            flags += [f"-fsanitize={sanitize}", "-fno-omit-frame-pointer", "-g", "-O1"]
        if os.environ.get("DISPATCHLAB_WERROR"):
            flags.append("-Werror")
        return flags


class build_with_data(build_py):
    """Also copy what the package reads at run time from data/ to dispatchlab/_data, and the public headers to _include."""

    PATTERNS = ("claims.toml", "traffic/*.csv")

    def run(self) -> None:
        super().run()
        if not self.editable_mode:  # an editable install reads data/ itself
            for source, copy in self.data_copies().items():
                self.mkpath(str(Path(copy).parent))
                self.copy_file(source, copy)

    def data_copies(self) -> dict[str, str]:
        """Source -> copy, of every file that ships."""
        found = [path for pattern in self.PATTERNS for path in sorted((HERE / "data").glob(pattern))]
        target = Path(self.build_lib) / "dispatchlab" / "_data"
        copies = {str(path): str(target / path.relative_to(HERE / "data")) for path in found}
        headers, folder = HERE / "csrc" / "include", target.parent / "_include"
        return copies | {str(path): str(folder / path.relative_to(headers)) for path in sorted(headers.rglob("*.h"))}

    def get_outputs(self, include_bytecode: bool = True) -> list[str]:
        return [*super().get_outputs(include_bytecode), *([] if self.editable_mode else self.data_copies().values())]


setup(
    ext_modules=[
        Extension(
            "dispatchlab._engine",
            sources("csrc/binding"),
            include_dirs=[*CORE_INCLUDES, "csrc/binding"],
            define_macros=[("Py_LIMITED_API", "0x030B0000")],
            py_limited_api=True,
        )
    ],
    cmdclass={"build_ext": build_engine, "build_py": build_with_data},
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
