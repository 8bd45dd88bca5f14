"""Frames to a GIF, and the packets of a recording once more."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

from ..errors import UsageError
from ..handlers import HandlerSet, handlers
from ..probes import expected_probes
from ..recording import Recording
from ..scenes import Scene, each_scene
from ..traffic import Traffic, make

DPI = 80
COLOURS = 64
FIT = 100
"""As many handlers as are drawn legibly."""


def gif(frames: Iterator[tuple[Figure, int]]) -> bytes:
    """The file's bytes; frames share the palette of the last one. It is played again and again."""
    pictures, times = [], []
    for figure, milliseconds in frames:
        figure.set_dpi(DPI)
        canvas = cast(FigureCanvasAgg, figure.canvas)
        canvas.draw()
        pictures.append(Image.fromarray(np.asarray(canvas.buffer_rgba())[:, :, :3].copy()))
        times.append(milliseconds)
    palette = pictures[-1].quantize(COLOURS, dither=Image.Dither.NONE)
    small = [p.quantize(palette=palette, dither=Image.Dither.NONE) for p in pictures]
    out = io.BytesIO()
    small[0].save(out, "GIF", save_all=True, append_images=small[1:], duration=times, loop=0, optimize=False)
    return out.getvalue()


@dataclass(frozen=True)
class Replay:
    """A scene with its handlers and packets made once more, out of what the recording says of them."""

    scene: Scene
    handlers: HandlerSet
    traffic: Traffic


def replay(recording: Recording, *arms: str, skewed: bool = False) -> Replay | None:
    """The scene that ran all of `arms` with most handlers that fit, its packets the recorded ones: their probes are compared.
    None where there is no such scene, or where its traffic came from a file."""
    fitting = [s for s in each_scene(recording) if s.has(*arms) and 4 <= s.slot.handlers <= FIT]
    fitting.sort(key=lambda s: (-s.slot.handlers, s.slot.traffic != "zipf"))
    for scene in fitting:
        if skewed and not scene.slot.traffic.startswith("zipf"):
            continue
        if (found := _again(recording, scene, arms[0])) is not None:
            return found
    return None


def _again(recording: Recording, scene: Scene, arm: str) -> Replay | None:
    s, m = scene.slot, scene.measurement
    if s.order != "registration" or s.overlap or s.plugins:
        return None
    try:
        hs = handlers(s.handlers, body=s.body, size=s.size, residual=s.residual, placement=s.predicates)
        tr = make(s.traffic, hs, seed=recording.seed, pool=s.pool)
    except UsageError:
        return None
    known = m.expected_probes.get(m.slots[scene.arms[arm]].label)
    same = known is not None and abs(float(expected_probes(arm, hs, tr).mean()) - known) < 1e-9
    return Replay(scene, hs, tr) if same else None
