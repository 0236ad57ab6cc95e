"""Mutation sampling: how many small mistakes in the code does the suite notice?

`python -m lab.mutants` (`make lab-mutants`) draws mistakes (a comparison turned round, a statement left out, a
constant off by one) in functions of `protocol`, `store`, `access`, `a2a_push` and `a2a_console`. It runs units and
integration once to learn which tests reach the changed statements. Then it runs these tests, fastest first, with each
mistake in turn. A mistake is noticed if a test fails that passes without it, and has survived if all tests pass. If the
tests of a mistake take too long, the mistake counts as not tried.

A process is forked for each mistake after the tests are collected, and the code object of the one changed function is
replaced in it. Nothing is written to the checkout, and Django is set up once. Mistakes that only other processes reach
(web servers, workers) count as not reached.

`--tests` names other tests, for a comparison with another commit: the same seed draws the same mistakes as long as the
code is the same.
"""

from __future__ import annotations

import argparse
import ast
import builtins
import contextlib
import gc
import importlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest

from tests.servers import with_path

ROOT = Path.cwd()
AREAS = ("a2a_tasks/protocol", "a2a_tasks/store", "a2a_tasks/access", "a2a_push", "a2a_console")
#: Folders in them that are pages and commands.
LEFT_OUT = {"migrations", "management", "admin", "api"}
#: Rooms of the console that read and write tables in their own way on each backend.
STORED = ("audit", "diagnosis", "privacy", "search", "statistics", "usage")
#: Backend, and the tests that are run on it.
RUNS = (
    (
        "sqlite",
        [
            "tests/unit",
            "tests/integration/store",
            "tests/integration/execution",
            "tests/integration/streaming",
            *(f"tests/integration/console/{room}" for room in STORED),
        ],
    ),
    ("stack", ["tests/integration"]),
)
#: Seconds that the tests of one mistake may take. A test that hangs is failed by pytest before.
MAX_SECONDS = 240
SWAPPED: dict[type[ast.AST], type[ast.AST]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
}
Function = ast.FunctionDef | ast.AsyncFunctionDef
Mistake = dict[str, Any]


# --- the mistakes -----------------------------------------------------------------------------------


def outermost_functions(tree: ast.Module) -> Iterator[tuple[str, Function]]:
    """Yield functions of the module and methods of its classes, with their qualified names."""
    todo: list[tuple[str, ast.AST]] = [("", node) for node in tree.body]
    while todo:
        prefix, node = todo.pop(0)
        if isinstance(node, Function):
            yield prefix + node.name, node
        elif isinstance(node, ast.ClassDef):
            todo += [(f"{prefix}{node.name}.", child) for child in node.body]


def statements(body: list[ast.stmt]) -> Iterator[tuple[list[ast.stmt], int]]:
    """Yield every statement below as (list it is in, index), those of nested functions included."""
    for index, statement in enumerate(body):
        yield body, index
        for field in ("body", "orelse", "finalbody"):
            yield from statements(getattr(statement, field, None) or [])
        for part in [*getattr(statement, "handlers", []), *getattr(statement, "cases", [])]:
            yield from statements(part.body)


def own_expressions(statement: ast.stmt) -> Iterator[ast.AST]:
    """Yield the nodes of the statement's own expressions, without the statements below it and without annotations."""
    todo: list[Any] = [statement]
    while todo:
        node = todo.pop(0)
        for name, value in ast.iter_fields(node):
            if name in {
                "annotation",
                "returns",
                "decorator_list",
                "args" if isinstance(node, Function) else "",
            }:
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST) and not isinstance(
                    child, (ast.stmt, ast.ExceptHandler, ast.match_case)
                ):
                    yield child
                    todo.append(child)


def is_logging(statement: ast.stmt) -> bool:
    return "logger." in ast.unparse(statement).split("\n", 1)[0]


def changes(body: list[ast.stmt], index: int) -> Iterator[tuple[str, Any]]:
    """Yield the ways this statement can be wrong: a name, and what applies it in place."""
    statement = body[index]
    if isinstance(
        statement, ast.ClassDef | ast.Import | ast.ImportFrom | ast.Global | ast.Nonlocal
    ) or is_logging(statement):
        return
    is_docstring = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    if is_docstring:
        return
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call | ast.Await):
        yield "left out", lambda: body.__setitem__(index, ast.copy_location(ast.Pass(), statement))
    if (
        isinstance(statement, ast.Return)
        and statement.value is not None
        and not (isinstance(statement.value, ast.Constant) and statement.value.value is None)
    ):
        none = ast.copy_location(ast.Constant(None), statement.value)
        yield "returns None", lambda: setattr(statement, "value", none)
    if isinstance(statement, ast.If | ast.While):
        test = statement.test
        turned = ast.copy_location(ast.UnaryOp(ast.Not(), test), test)
        yield "condition turned", lambda: setattr(statement, "test", turned)
    for node in own_expressions(statement):
        if isinstance(node, ast.Compare) and type(node.ops[0]) in SWAPPED:
            yield (
                "comparison",
                lambda node=node: node.ops.__setitem__(0, SWAPPED[type(node.ops[0])]()),
            )
        elif isinstance(node, ast.BoolOp | ast.BinOp) and type(node.op) in SWAPPED:
            yield "operator", lambda node=node: setattr(node, "op", SWAPPED[type(node.op)]())
        elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
            yield "constant", lambda node=node: setattr(node, "value", not node.value)
        elif isinstance(node, ast.Constant) and type(node.value) is int:
            yield "constant", lambda node=node: setattr(node, "value", node.value + 1)


def candidates(path: str) -> list[Mistake]:
    """List all mistakes that can be made in a file."""
    found = []
    for name, function in outermost_functions(ast.parse((ROOT / path).read_text())):
        places = list(statements(function.body))
        for place, (body, index) in enumerate(places):
            for number, (kind, _) in enumerate(changes(body, index)):
                found.append(
                    {
                        "path": path,
                        "function": name,
                        "line": body[index].lineno,
                        "kind": kind,
                        "place": place,
                        "number": number,
                        "text": ast.unparse(body[index]).split("\n")[0][:100],
                    }
                )
    return found


def sample(seed: int, most: int) -> list[Mistake]:
    """Draw the same number of mistakes from each area."""
    chance, drawn = random.Random(seed), []
    for area in AREAS:
        paths = sorted(p.relative_to(ROOT).as_posix() for p in (ROOT / area).rglob("*.py"))
        paths = [p for p in paths if not LEFT_OUT & set(p.split("/"))]
        everything = [mistake for path in paths for mistake in candidates(path)]
        drawn += chance.sample(everything, most // len(AREAS))
    return drawn


def compiled(path: str, wanted: list[Mistake], *, hits: bool) -> dict[tuple[str, int], CodeType]:
    """Compile the file with these mistakes, or with a report of each place instead; the code of its functions by name and line."""
    tree = ast.parse((ROOT / path).read_text())
    for name, function in outermost_functions(tree):
        places = list(statements(function.body))
        inserted: list[tuple[list[ast.stmt], ast.stmt, ast.stmt]] = []
        for mistake in wanted:
            if mistake["function"] == name and mistake["defined"] == function.lineno:
                body, index = places[mistake["place"]]
                if hits:
                    call = ast.parse(f"__mutant_reached__({mistake['id']})").body[0]
                    ast.copy_location(call, body[index])
                    ast.copy_location(call.value, body[index])  # type: ignore[attr-defined]
                    inserted.append((body, body[index], call))
                else:
                    list(changes(body, index))[mistake["number"]][1]()
        for body, statement, call in inserted:
            body.insert(body.index(statement), call)
    found: dict[tuple[str, int], CodeType] = {}
    todo = [compile(ast.fix_missing_locations(tree), str(ROOT / path), "exec")]
    while todo:
        for constant in todo.pop().co_consts:
            if isinstance(constant, CodeType):
                found[constant.co_qualname, constant.co_firstlineno] = constant
                todo.append(constant)
    return found


def replace(wanted: list[Mistake], *, hits: bool) -> None:
    """Put the changed code into the functions of this process."""
    by_path: dict[str, list[Mistake]] = defaultdict(list)
    for mistake in wanted:
        by_path[mistake["path"]].append(mistake)
    codes = {str(ROOT / path): compiled(path, some, hits=hits) for path, some in by_path.items()}
    names = {(str(ROOT / m["path"]), m["function"]) for m in wanted}
    for path in by_path:
        importlib.import_module(
            path.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
        )
    replaced = set()
    gc.unfreeze()  # what was frozen after collection is not among the objects
    for function in gc.get_objects():
        if type(function) is FunctionType:
            old = function.__code__
            if (old.co_filename, old.co_qualname) in names:
                new = codes[old.co_filename].get((old.co_qualname, old.co_firstlineno))
                if new is not None and new.co_freevars == old.co_freevars:
                    function.__code__ = new
                    replaced.add((old.co_filename, old.co_qualname))
    for name in names - replaced:
        print("not replaced:", name)


# --- as a plugin of pytest --------------------------------------------------------------------------


class Reached:
    """Records which tests reach which mistakes."""

    def __init__(self, mistakes: list[Mistake], out: str) -> None:
        self.mistakes, self.out = mistakes, out
        self.current: str | None = None
        self.reached: dict[int, dict[str, float]] = defaultdict(dict)

    def reach(self, number: int) -> None:
        if self.current:
            self.reached[number].setdefault(self.current, 0.0)

    def pytest_collection_finish(self) -> None:
        builtins.__mutant_reached__ = self.reach  # type: ignore[attr-defined]
        replace(self.mistakes, hits=True)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Any:
        self.current, begun = item.nodeid, time.monotonic()
        result = yield
        for tests in self.reached.values():
            if item.nodeid in tests:
                tests[item.nodeid] = time.monotonic() - begun
        self.current = None
        return result

    def pytest_sessionfinish(self) -> None:
        worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
        Path(f"{self.out}.{worker}").write_text(json.dumps(self.reached))


class Kill:
    """Runs the tests of each mistake in a process forked for it."""

    def __init__(self, jobs: list[Mistake], out: str) -> None:
        self.jobs, self.out = jobs, out
        #: Tests that failed with a mistake: those that pass without it, and those that do not.
        self.sound: set[str] = set()
        self.unsound: set[str] = set()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        from django.db import connections  # noqa: PLC0415
        from django.test.utils import setup_databases  # noqa: PLC0415
        from pytest_django.plugin import blocking_manager_key  # noqa: PLC0415

        with session.config.stash[blocking_manager_key].unblock():
            setup_databases(verbosity=0, interactive=False, keepdb=True)
            connections.close_all()
        by_id = {item.nodeid: item for item in session.items}
        with Path(self.out).open("a") as out:
            for job in self.jobs:
                tests = sorted(
                    (seconds, name) for name, seconds in job["tests"].items() if name in by_id
                )
                begun = time.monotonic()
                verdict, by = self._judge(session, job, {name: by_id[name] for _, name in tests})
                out.write(
                    json.dumps(
                        {
                            "id": job["id"],
                            "verdict": verdict,
                            "by": by,
                            "tests": len(tests),
                            "seconds": round(time.monotonic() - begun, 1),
                        }
                    )
                    + "\n"
                )
                out.flush()
        return True

    def _judge(
        self, session: pytest.Session, job: Mistake, items: dict[str, pytest.Item]
    ) -> tuple[str, str]:
        """Run the tests with the mistake. If one fails that also fails without it, leave it out and run the others again."""
        while True:
            for name in self.unsound:
                items.pop(name, None)
            verdict, by = self._run(session, job, list(items.values()))
            if verdict == "noticed" and by not in self.sound:
                alone, _ = self._run(session, None, [items[by]])
                (self.sound if alone == "survived" else self.unsound).add(by)
            if by not in self.unsound:
                return verdict, by

    def _run(
        self, session: pytest.Session, job: Mistake | None, items: list[pytest.Item]
    ) -> tuple[str, str]:
        """Run the tests with a mistake, or without one. Returns a verdict and the test that noticed it, or the reason."""
        if not items:
            return "not reached", ""
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.setpgid(0, 0)
            self._child(session, job, items, write)
        os.close(write)
        deadline = time.monotonic() + MAX_SECONDS
        while time.monotonic() < deadline:
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                said = os.read(read, 10_000).decode(errors="replace")
                os.close(read)
                with contextlib.suppress(ProcessLookupError):  # what a failed test has started
                    os.killpg(pid, signal.SIGKILL)
                if os.waitstatus_to_exitcode(status) == 0:
                    return "survived", ""
                is_test = any(said == item.nodeid for item in items)
                return "noticed" if is_test else "not tried", said
            time.sleep(0.02)
        os.killpg(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(read)
        return "not tried", "took too long"

    def _child(
        self, session: pytest.Session, job: Mistake | None, items: list[pytest.Item], write: int
    ) -> None:
        code = 1
        try:
            quiet = os.open(os.devnull, os.O_RDWR)
            for descriptor in (0, 1, 2):
                os.dup2(quiet, descriptor)
            own_database()
            if job is not None:
                replace([job], hits=False)
            session.items = items
            session.config.option.maxfail = 1
            for index, item in enumerate(items):
                following = items[index + 1] if index + 1 < len(items) else None
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                if session.testsfailed or session.shouldfail:
                    os.write(write, item.nodeid.encode()[:5000])
                    break
            code = 1 if session.testsfailed else 0
        except BaseException as fault:
            os.write(write, repr(fault).encode()[:5000])
        finally:
            os._exit(code)


def own_database() -> None:
    """Give this process, and those it starts, a copy of the database that its parent made."""
    from django.db import connections  # noqa: PLC0415

    connection = connections["default"]
    settings = connection.settings_dict
    old = settings["NAME"]
    if connection.vendor == "sqlite":
        folder = Path(str(old)).parent / "mutant"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        new = str(folder / Path(str(old)).name)
        shutil.copy(old, new)
        os.environ["VAR_DIR"] = str(folder)
    else:
        import psycopg  # noqa: PLC0415

        new = f"{old}_m"
        with psycopg.connect(
            host=settings["HOST"],
            port=settings["PORT"],
            user=settings["USER"],
            dbname="postgres",
            autocommit=True,
        ) as server:
            server.execute(f'drop database if exists "{new}" with (force)'.encode())
            server.execute(f'create database "{new}" template "{old}"'.encode())
        os.environ["DATABASE_URL"] = with_path(os.environ["DATABASE_URL"], new)
    settings["NAME"] = new
    settings["TEST"]["NAME"] = new


def pytest_configure(config: pytest.Config) -> None:
    mode = os.environ.get("MUTANTS_MODE")
    if mode == "reached":
        config.pluginmanager.register(
            Reached(
                json.loads(Path(os.environ["MUTANTS_IN"]).read_text()), os.environ["MUTANTS_OUT"]
            )
        )
    elif mode == "kill" and "PYTEST_XDIST_WORKER" not in os.environ:
        config.pluginmanager.register(
            Kill(json.loads(Path(os.environ["MUTANTS_IN"]).read_text()), os.environ["MUTANTS_OUT"])
        )


# --- the command ------------------------------------------------------------------------------------


def main() -> None:
    """Draw, learn what reaches what, run, and print what survived."""
    parser = argparse.ArgumentParser(prog="python -m lab.mutants", description=__doc__)
    parser.add_argument("--seed", type=int, default=14)
    parser.add_argument("--most", type=int, default=300, help="mistakes in all")
    parser.add_argument("--out", type=Path, default=Path("var/mutants"))
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time")
    parser.add_argument("--backend", choices=["sqlite", "stack"], help="this one only")
    parser.add_argument("--tests", nargs="*", help="these tests only")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    mistakes = drawn(options.seed, options.most)
    verdicts: dict[int, Mistake] = {}
    for backend, tests in RUNS:
        if options.backend in {None, backend}:
            open_ = [m for m in mistakes if verdicts.get(m["id"], {}).get("verdict") != "noticed"]
            verdicts |= run(options, backend, options.tests or tests, open_)
    for mistake in mistakes:
        mistake |= verdicts.get(mistake["id"], {"verdict": "not reached"})
    (options.out / "verdicts.json").write_text(json.dumps(mistakes, indent=1))
    for area in AREAS:
        counted = Counter(m["verdict"] for m in mistakes if m["path"].startswith(area))
        print(f"{area}: {dict(counted)}")
    for m in mistakes:
        if m["verdict"] != "noticed":
            print(f"{m['verdict']}: {m['path']}:{m['line']} {m['kind']}: {m['text']}")


def run(
    options: argparse.Namespace, backend: str, tests: list[str], mistakes: list[Mistake]
) -> dict[int, Mistake]:
    """Run the tests on a backend: once to learn what they reach, then with each of the mistakes."""
    environ = {**os.environ, "TEST_BACKEND": backend}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "lab.mutants",
    ]
    reached, wanted = options.out / f"reached-{backend}", options.out / f"mistakes-{backend}.json"
    for old in options.out.glob(f"{reached.name}.*"):
        old.unlink()
    wanted.write_text(json.dumps(mistakes))
    learn = {
        **environ,
        "MUTANTS_MODE": "reached",
        "MUTANTS_IN": str(wanted),
        "MUTANTS_OUT": str(reached),
    }
    subprocess.run(
        [*command, "-n", str(options.jobs), "--dist", "loadfile", *tests], env=learn, check=False
    )
    by: dict[int, dict[str, float]] = defaultdict(dict)
    for part in options.out.glob(f"{reached.name}.*"):
        for number, seconds in json.loads(part.read_text()).items():
            by[int(number)] |= seconds
    jobs = [{**m, "tests": by[m["id"]]} for m in mistakes if by[m["id"]]]
    outs = []
    running = []
    for part_number in range(options.jobs):
        part, out = (
            options.out / f"jobs-{backend}-{part_number}.json",
            options.out / f"verdicts-{backend}-{part_number}",
        )
        part.write_text(json.dumps(jobs[part_number :: options.jobs]))
        out.unlink(missing_ok=True)
        outs.append(out)
        kill = {**environ, "MUTANTS_MODE": "kill", "MUTANTS_IN": str(part), "MUTANTS_OUT": str(out)}
        running.append(subprocess.Popen([*command, "-n", "0", "--reuse-db", *tests], env=kill))
    for process in running:
        process.wait()
    lines = [
        json.loads(line) for out in outs if out.exists() for line in out.read_text().splitlines()
    ]
    return {line["id"]: line for line in lines}


def drawn(seed: int, most: int) -> list[Mistake]:
    """Draw mistakes, and number them."""
    mistakes = sample(seed, most)
    for index, mistake in enumerate(mistakes):
        mistake["id"] = index
        tree = ast.parse((ROOT / mistake["path"]).read_text())
        mistake["defined"] = next(
            function.lineno
            for name, function in outermost_functions(tree)
            if name == mistake["function"]
            and function.lineno <= mistake["line"] <= (function.end_lineno or 0)
        )
    return mistakes


if __name__ == "__main__":
    main()
