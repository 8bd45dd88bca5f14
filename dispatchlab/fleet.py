"""A sweep on the machines of a Dask cluster: each measures one combination at a time, pinned; the results come back here.

A worker takes part when it was started with the resource "dispatchlab": `dask worker ADDRESS --nthreads 1 --resources dispatchlab=1`.
"""

from __future__ import annotations

import json
import os
import socket
import tempfile
import time
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from .errors import Error, ToolError, UsageError, explain
from .recording import Recording, load
from .sweep import Combination, Done, Folder, Plan, measure, pending

RESOURCE = "dispatchlab"
CONNECT, PATIENCE, TURN = 15.0, 60.0, 1.0
"""Seconds: for reaching the scheduler; without a single worker before giving up; between two looks at the workers."""
RETRIES = 2


def remote(plan: Plan, c: Combination) -> bytes:
    """Runs on a worker: one combination, as the bytes of its recording."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "cell.json"
        measure(plan, c).save(file)
        return file.read_bytes()


def connect(scheduler: str) -> Any:
    """A client of the scheduler at an address (tcp://host:8786) or behind a scheduler file. UsageError, ToolError."""
    try:
        client_of: Any = import_module("distributed").Client
    except ImportError as error:
        what = explain("--on needs Dask's distributed", "sweep", remedy="pip install 'dispatchlab[fleet]'")
        raise UsageError(what) from error
    try:
        address = _listening(scheduler)
        client = client_of(address, timeout=CONNECT, set_as_default=False)
    except (OSError, ValueError, TypeError, LookupError, RuntimeError) as error:
        got = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ToolError(explain("no scheduler answers", scheduler, "tcp://host:port or a scheduler file", got)) from error
    if not workers(client):
        client.close()
        remedy = f"start one: dask worker {scheduler} --nthreads 1 --resources {RESOURCE}=1"
        raise UsageError(explain("no worker takes part", scheduler, f"one with the resource {RESOURCE}", "none", remedy))
    return client


def _listening(scheduler: str) -> str:
    """The address, once something listens there: a client that cannot connect complains for long. OSError, ValueError, KeyError."""
    address = str(json.loads(Path(scheduler).read_bytes())["address"]) if os.path.isfile(scheduler) else scheduler
    parts = urlsplit(address if "://" in address else f"tcp://{address}")
    if parts.scheme not in ("tcp", "tls") or not parts.hostname or not parts.port:
        raise ValueError(f"no address: {address!r}")
    socket.create_connection((parts.hostname, parts.port), CONNECT).close()
    return address


def workers(client: Any) -> list[str]:
    """Addresses of the workers that take part."""
    known = client.scheduler_info(n_workers=-1)["workers"]
    return [address for address, worker in known.items() if worker.get("resources", {}).get(RESOURCE, 0) >= 1]


def run(plan: Plan, folder: Folder, done: Done, scheduler: str, patience: float = PATIENCE) -> None:
    """Have measured what the folder lacks. A combination whose worker dies goes to another one; what fails for good is told, and
    the others go on. ToolError when no worker is left for `patience` seconds."""
    missing = pending(plan, folder, done)
    if not missing:
        return
    client = connect(scheduler)
    try:
        waiting = {
            client.submit(
                remote, plan, c, key=f"dispatchlab-{plan.digest()[:8]}-{time.time_ns()}-{i}", pure=False, retries=RETRIES,
                resources={RESOURCE: 1},
            ): c
            for i, c in enumerate(missing)
        }  # fmt: skip
        _collect(client, waiting, folder, done, patience)
    finally:
        client.close()


def _collect(client: Any, waiting: dict[Any, Combination], folder: Folder, done: Done, patience: float) -> None:
    """Keep each result as it comes."""
    seen = time.monotonic()
    while waiting:
        for future in [f for f in waiting if f.done()]:
            c = waiting.pop(future)
            _take(future, c, folder, done)
        if workers(client):
            seen = time.monotonic()
        elif time.monotonic() - seen > patience:
            left = len(waiting)
            client.cancel(list(waiting))
            what = f"all workers are gone, {left} combinations are not measured"
            raise ToolError(explain(what, "sweep", remedy="start workers and start the sweep again: it goes on where it was"))
        if waiting:
            time.sleep(TURN / 4)


def _take(future: Any, c: Combination, folder: Folder, done: Done) -> None:
    """The result of one, checked and kept; or why there is none."""
    if future.status != "finished":
        error = future.exception() if future.status == "error" else None
        why = str(error).splitlines()[0] if error is not None and str(error) else future.status
        done(c, None, why if isinstance(error, Error) else f"{type(error).__name__}: {why}")
        return
    try:
        recording = _received(future.result())
    except Error as error:
        done(c, None, str(error))
        return
    folder.keep(c, recording)
    done(c, recording, "measured")


def _received(data: bytes) -> Recording:
    """The recording in these bytes, with its digest checked."""
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "cell.json"
        file.write_bytes(data)
        return load(file)
