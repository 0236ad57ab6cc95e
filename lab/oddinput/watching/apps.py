"""The app: a thread that wants the interpreter every millisecond, and notes how much the process computed meanwhile."""

import os
import threading
import time
from io import FileIO
from pathlib import Path

from django.apps import AppConfig

#: Seconds of CPU for which the interpreter was held that are worth a line.
LEAST = 0.01


class Watching(AppConfig):
    """Watches the process from its start, if there is a directory for what it sees."""

    name = "lab.oddinput.watching"
    label = "oddinput_watching"

    def ready(self) -> None:
        """Start the thread."""
        if directory := os.environ.get("ODDINPUT_HOLDS"):
            path = Path(directory) / str(os.getpid())
            threading.Thread(target=_watch, args=(path,), daemon=True).start()


def _watch(path: Path) -> None:
    """Write the id of this thread, then a line for each hold: its moment, and the CPU of the process in it.

    Threads that compute in Python give the interpreter away after 5 ms if another one wants it. Only a function in C
    keeps it for longer. Other processes take time, but no CPU of this one. The time in which this thread may run and
    waits for a core is no hold: others of the process may compute in it.
    """
    mine = Path(f"/proc/self/task/{threading.get_native_id()}/schedstat")
    with path.open("w", buffering=1) as file, mine.open("rb", buffering=0) as waits:
        file.write(f"{threading.get_native_id()}\n")
        before, waited = time.process_time(), _read_wait(waits)
        while True:
            time.sleep(0.001)
            now, since = time.process_time(), waited
            waited = _read_wait(waits)
            held = now - before - (waited - since)
            if held > LEAST:
                file.write(f"{time.time()} {held}\n")
            before = now


def _read_wait(file: FileIO) -> float:
    """Return the seconds for which a thread has waited for a core."""
    file.seek(0)
    return int(file.read().split()[1]) / 1e9
