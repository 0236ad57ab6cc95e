"""The log while nobody reads it: the process goes on."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from a2a_tasks.telemetry import patient_stream
from a2a_tasks.telemetry.patient_stream import MAX_WAITING, PatientStream
from tests import ROOT
from tests.support.printing_process import PATIENCE

#: A process with the log of the host, which writes more than a pipe takes and then says so.
WRITES = """
import logging, os, sys
import django
django.setup()
from a2a_tasks.telemetry.patient_stream import replace_standard_streams
replace_standard_streams()
for number in range(200):
    logging.getLogger("agent").error("%d %s", number, "x" * 1000)
    print("printed", "x" * 1000, file=sys.stderr)
os.write(1, b"done")
"""

#: A process whose standard error output was closed by who started it. It logs, and shows where its other log goes.
CLOSED = """
import logging, sys
import django
django.setup()
from a2a_tasks.telemetry.patient_stream import PatientStream, replace_standard_streams
logging.getLogger("access").addHandler(access := logging.StreamHandler(sys.stdout))
replace_standard_streams()
logging.getLogger("agent").error("nobody hears it")
print(sys.stderr, isinstance(access.stream, PatientStream))
"""
#: A command that serves. A module of an agent has printed text before, which waits in the stream of Python.
SERVES = """
print("from before")
import django
django.setup()
from a2a_project.management.commands.serve import ServingCommand
class Command(ServingCommand):
    requires_system_checks = []
    def handle(self, **_):
        self.stdout.write("Serving")
        print("after")
Command().run_from_argv(["manage.py", "command"])
"""
#: A process whose thread holds the lock of the stream when the interpreter ends, as the one that writes may. `hold` is
#: registered before the flush of the stream, and so is called after it.
ENDS = """
import atexit, threading
def hold():
    holder = threading.Thread(target=stdout._changed.acquire)
    holder.start()
    holder.join()
atexit.register(hold)
from a2a_tasks.telemetry.patient_stream import replace_standard_streams, stdout
from a2a_tasks.telemetry.printed_lines import PrintedLines
replace_standard_streams()
class Late:
    def __init__(self, file):
        self.file = file
    def __del__(self):
        print("last", file=self.file)
late = Late(stdout), Late(PrintedLines(stdout, "stdout", 20))
print("first")
"""
#: A process that prints with its last object, when `{how}` has happened to its output.
PRINTS_LAST = """
import os
from a2a_tasks.telemetry.patient_stream import replace_standard_streams, stdout
replace_standard_streams()
class Late:
    def __init__(self, file, os):
        self.file, self.os = file, os
    def __del__(self):
        {how}
        self.file.write("x" * 1000000)
        self.os.write(2, b"ended")
late = Late(stdout, os)
"""


class Pipe:
    """A pipe that is read when the test wants it to be."""

    def __init__(self) -> None:
        self.near, far = os.pipe()
        self.far = os.fdopen(far, "w")

    def read(self, size: int) -> str:
        """Exactly so many bytes."""
        read = b""
        while len(read) < size:
            read += os.read(self.near, size - len(read))
        return read.decode()


def run(script: str, **options: Any) -> subprocess.CompletedProcess[bytes]:
    """Run a script with the settings of tests to its end."""
    env = {**os.environ, "DJANGO_SETTINGS_MODULE": "tests.settings", "PYTHONUNBUFFERED": ""}
    command = [sys.executable, "-c", script]
    return subprocess.run(command, cwd=ROOT, env=env, timeout=PATIENCE, check=False, **options)  # noqa: S603 - our own


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    made = Pipe()
    yield made
    os.close(made.near)
    made.far.close()


def test_a_process_goes_on_while_nobody_reads_its_log() -> None:
    near, far = os.pipe()
    process = run(WRITES, stdout=subprocess.PIPE, stderr=far)
    os.close(near)
    os.close(far)
    assert (process.stdout, process.returncode) == (b"done", 0)


def test_a_process_without_standard_error_output_has_none_and_its_other_logs_are_patient() -> None:
    script = [sys.executable, "-c", CLOSED]
    process = subprocess.run(  # noqa: S603 - our own script
        ["/bin/sh", "-c", 'exec "$@" 2>&-', "sh", *script],
        cwd=ROOT,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "tests.settings"},
        stdout=subprocess.PIPE,
        timeout=PATIENCE,
        check=False,
    )
    assert (process.stdout, process.returncode) == (b"None True\n", 0)


def test_all_that_a_command_has_printed_is_out_at_its_end() -> None:
    process = run(SERVES, capture_output=True)
    assert (process.stdout, process.returncode) == (b"from before\nServing\nafter\n", 0)


def test_a_process_ends_whatever_its_threads_hold_and_what_it_prints_then_is_out() -> None:
    process = run(ENDS, capture_output=True)
    assert process.stdout.split(b"\n") == [b"first", b"last", b"last", b""]
    assert (process.stderr, process.returncode) == (b"", 0)


def test_what_is_printed_by_what_python_calls_at_its_end_is_out() -> None:
    early = "import atexit\natexit.register(lambda: print('bye'))\n"
    begin = (
        "from a2a_tasks.telemetry.patient_stream import replace_standard_streams as begin\nbegin()"
    )
    assert run(early + begin, capture_output=True).stdout == b"bye\n"


def test_a_process_ends_though_nobody_reads_what_it_prints_last() -> None:
    near, far = os.pipe()
    os.set_blocking(far, False)
    with contextlib.suppress(BlockingIOError):
        while os.write(far, b"x" * MAX_WAITING):
            pass
    os.set_blocking(far, True)
    try:
        process = run(ENDS, stdout=far)
    finally:
        os.close(near)
        os.close(far)
    assert process.returncode == 0


@pytest.mark.parametrize("how", ["pass", "self.os.close(1)", "self.file._stream.close()"])
def test_a_process_ends_whatever_has_happened_to_the_output_that_it_prints_last(how: str) -> None:
    near, far = os.pipe()
    try:
        process = run(PRINTS_LAST.format(how=how), stdout=far, stderr=subprocess.PIPE)
    finally:
        os.close(near)
        os.close(far)
    assert (process.stderr, process.returncode) == (b"ended", 0)


@pytest.mark.parametrize("count", [1, 20])
def test_a_reader_that_reads_gets_all_however_much_comes_at_once(
    pipe: Pipe, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    monkeypatch.setattr(patient_stream, "PATIENCE", PATIENCE)
    text, read = "x" * (4 * MAX_WAITING // count), list[str]()
    reader = threading.Thread(target=lambda: read.append(pipe.read(count * len(text))))
    reader.start()
    stream = PatientStream(pipe.far)
    for _ in range(count):
        stream.write(text)
    stream.flush()
    reader.join(PATIENCE)
    assert (read, caplog.messages) == ([count * text], [])


def test_a_line_is_out_when_it_was_flushed(pipe: Pipe) -> None:
    stream = PatientStream(pipe.far)
    print("a line", file=stream, flush=True)
    os.set_blocking(pipe.near, False)
    assert os.read(pipe.near, 100) == b"a line\n"


def test_lines_wait_for_a_slow_reader_and_come_in_order(pipe: Pipe) -> None:
    stream, lines = PatientStream(pipe.far), [f"{n} {'x' * 999}\n" for n in range(500)]
    for line in lines:
        print(line, end="", file=stream, flush=True)
    assert pipe.read(sum(map(len, lines))) == "".join(lines)


def test_what_is_too_much_is_lost_and_counted(pipe: Pipe, caplog: pytest.LogCaptureFixture) -> None:
    stream, piece = PatientStream(pipe.far), "x" * (MAX_WAITING // 4)
    for _ in range(6):
        print(piece, end="", file=stream, flush=True)
    assert pipe.read(4 * len(piece)) == 4 * piece
    print("here", end="", file=stream, flush=True)
    assert pipe.read(4) == "here"
    assert ["2 lines of the log were lost" in message for message in caplog.messages] == [True]


def test_without_a_thread_a_line_is_written_at_once(
    pipe: Pipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the end of the process, or if the machine has no threads left."""

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    stream = PatientStream(pipe.far)
    monkeypatch.setattr(threading.Thread, "start", refuse)
    print("a line", file=stream, flush=True)
    assert pipe.read(7) == "a line\n"


def test_a_full_disk_loses_lines_only(caplog: pytest.LogCaptureFixture) -> None:
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        stream = PatientStream(full)
        print("a line", file=stream, flush=True)
    assert not caplog.messages


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # Python 3.12 and later
def test_a_forked_process_has_a_thread_of_its_own(pipe: Pipe) -> None:
    stream = PatientStream(pipe.far)
    print("parent", file=stream, flush=True)
    if not (child := os.fork()):
        print("child", file=stream, flush=True)
        os._exit(0)
    os.waitpid(child, 0)
    assert pipe.read(13) == "parent\nchild\n"
