"""The Dockerfile, done without an engine: `COPY` copies, `RUN` runs in a root of its own, and what is unknown is an error."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from string import Template

from lab.containers.namespaces import Root, Space
from tests import ROOT
from tests.support.dockerfile import instructions

__all__ = ["Image", "build"]

#: What a download needs to know of this machine; Docker has it from its own configuration.
DOWNLOADS = (
    *("PIP_INDEX_URL", "PIP_CERT", "PIP_DEFAULT_TIMEOUT", "SSL_CERT_FILE"),
    *("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"),
)
#: Python in `/usr/local`, as in the images of `python`, without what they leave out.
PYTHON = f"lib/python{sys.version_info.major}.{sys.version_info.minor}"
LEFT_OUT = ("site-packages", "test", "idlelib", "tkinter", "turtledemo", "config-*")


@dataclass(frozen=True)
class Image:
    """A stage as it is after some instructions."""

    root: Root
    environ: dict[str, str] = field(default_factory=dict)
    arguments: dict[str, str] = field(default_factory=dict)
    directory: str = "/"
    user: str = "0"
    command: tuple[str, ...] = ()
    healthcheck: tuple[str, ...] = ()
    #: The lines that ran.
    ran: tuple[str, ...] = ()


def build(folder: Path) -> Image:
    """Build the image of the checkout in this folder. Raises AssertionError with the output if a line fails."""
    stages: dict[str, Image] = {}
    image: Image | None = None
    for word, rest in instructions((ROOT / "Dockerfile").read_text(encoding="utf-8")):
        if word == "FROM":
            assert rest.startswith("python:${PYTHON_VERSION}-slim"), rest
            name = rest.partition(" AS ")[2] or "image"
            root = Root(folder / name)
            root.make()
            add_python(root)
            path = "/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin"
            image = stages[name] = Image(root, {"PATH": path})
        elif image is None:
            assert word == "ARG", word  # for FROM
        else:
            *_, last = stages
            image = stages[last] = follow(word, rest, image, stages)
    assert image is not None
    return image


def follow(word: str, rest: str, image: Image, stages: dict[str, Image]) -> Image:
    """Follow an instruction."""
    known = {**image.arguments, **image.environ}
    match word:
        case "ARG":
            name, _, value = rest.partition("=")
            return replace(image, arguments={**image.arguments, name: value})
        case "ENV":
            pairs = [each.partition("=") for each in shlex.split(rest)]
            made = {name: Template(value).safe_substitute(known) for name, _, value in pairs}
            return replace(image, environ={**image.environ, **made})
        case "WORKDIR":
            inside(image, rest).mkdir(parents=True, exist_ok=True)
            return replace(image, directory=rest)
        case "COPY":
            copy(rest, image, stages)
        case "RUN":
            run(rest, image)
            return replace(image, ran=(*image.ran, rest))
        case "USER":
            return replace(image, user=rest)
        case "HEALTHCHECK":
            return replace(image, healthcheck=tuple(json.loads(rest.partition(" CMD ")[2])))
        case "CMD":
            return replace(image, command=tuple(json.loads(rest)))
        case "EXPOSE":
            pass
        case _:
            raise AssertionError(f"the tests do not know {word}")
    return image


def inside(image: Image, path: str) -> Path:
    """A path of the image on this machine."""
    place = Path(image.directory, path)  # an absolute path replaces the directory
    return image.root.path / str(place).lstrip("/")


def copy(words: str, image: Image, stages: dict[str, Image]) -> None:
    """Copy from the checkout, what .dockerignore lets in, or from a stage."""
    *options, target = words.split()
    source = ROOT
    if options[0].startswith("--from="):
        source = stages[options.pop(0).removeprefix("--from=")].root.path
    for each in options:
        place, to = source / each.lstrip("/"), inside(image, target)
        if place.is_dir():
            unwanted = shutil.ignore_patterns("__pycache__", "*.pyc") if source == ROOT else None
            shutil.copytree(place, to, symlinks=True, ignore=unwanted, dirs_exist_ok=True)
        else:
            shutil.copy(place, to / place.name if target.endswith("/") else to)


def run(line: str, image: Image) -> None:
    """Run a line, with nothing of this machine's environment but how to download."""
    downloads = {name: os.environ[name] for name in DOWNLOADS if name in os.environ}
    environ = {"HOME": "/root", **downloads, **image.arguments, **image.environ}
    space = Space(image.root, environ, image.directory, image.user)
    space.run(["/bin/sh", "-c", line])


def add_python(root: Root) -> None:
    """Copy the Python of the tests to `/usr/local`, without any package but pip."""
    base, local = Path(sys.base_prefix), root.path / "local"
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    shutil.copytree(
        base / PYTHON, local / PYTHON, symlinks=True, ignore=shutil.ignore_patterns(*LEFT_OUT)
    )
    (local / PYTHON / "site-packages").mkdir()
    for library in (base / "lib").glob(f"lib{version}*.so*"):
        shutil.copy(library, local / "lib", follow_symlinks=False)
    (local / "bin").mkdir()
    shutil.copy((base / "bin" / version).resolve(), local / "bin" / version)
    for name in ("python3", "python"):
        (local / "bin" / name).symlink_to(version)
    run("ldconfig", Image(root, {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}))
    bare = Image(root, {"PATH": "/usr/local/bin:/usr/bin:/bin"})
    run("python -m ensurepip --default-pip", bare)
    (local / "bin" / "pip").unlink(missing_ok=True)
    (local / "bin" / "pip").symlink_to("pip3")
