"""`manage.py startagent` writes an app that is hosted, in order and tested, and refuses names that would not work."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from a2a_tasks.conf import conf
from a2a_tasks.management.commands.startagent import KINDS
from tests import ROOT
from tests.backend import children
from tests.support.thorough import thorough


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in an empty directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def startagent(*words: str) -> str:
    """Run the command; returns what it printed."""
    out = StringIO()
    call_command("startagent", *words, stdout=out, no_color=True)
    return out.getvalue()


def manage(here: Path, *words: str, hosting: str) -> subprocess.CompletedProcess[str]:
    """Run manage.py in a process of its own that hosts these apps."""
    servers = {"DATABASE_URL", "REDIS_URL", "CELERY_BROKER_URL"}  # an app's own tests need none
    environ = {name: value for name, value in children().items() if name not in servers}
    environ |= {
        "A2A_APPS": hosting,
        "PYTHONPATH": f"{here}{os.pathsep}{ROOT}",
        "VAR_DIR": str(here),
    }
    return subprocess.run(  # noqa: S603
        [sys.executable, ROOT / "manage.py", *words],
        cwd=here,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )


class TestWhatIsWritten:
    @pytest.mark.parametrize(
        ("words", "path"),
        [
            (["weather_report"], "weather_report"),
            thorough(["weather_report", "weather/report"], "weather.report"),
            *(
                thorough(["weather_report", "--kind", kind], "weather_report")
                for kind in KINDS
                if kind != "text"
            ),
        ],
    )
    def test_is_found_checked_and_passes_its_own_tests(
        self, here: Path, words: list[str], path: str
    ) -> None:
        startagent(*words)
        hosting = f"examples.demo,{path}"
        tested = manage(here, "test", f"{path}.tests", hosting=hosting)
        assert re.search(r"Ran [234] tests", tested.stderr)
        assert tested.returncode == 0, tested.stderr
        script = (
            "from django.core.management import call_command; call_command('check'); "
            "from a2a_tasks.agents import registry; print(registry.find('weather-report'))"
        )
        shown = manage(here, "shell", "--no-imports", "-c", script, hosting=hosting)
        assert f"{path}.agents.WeatherReport" in shown.stdout, shown.stderr

    @pytest.mark.thorough
    def test_its_tests_fail_when_the_agent_says_something_else(self, here: Path) -> None:
        startagent("weather")
        agent = here / "weather" / "agents.py"
        agent.write_text(agent.read_text().replace("upper()", "lower()"))
        tested = manage(here, "test", "weather.tests", hosting="weather")
        assert tested.returncode == 1
        assert "'hello' != 'HELLO'" in tested.stderr

    def test_is_four_files_and_an_agent_of_a_dozen_lines(self, here: Path) -> None:
        startagent("weather")
        files = sorted(path.name for path in (here / "weather").iterdir())
        assert files == ["__init__.py", "agents.py", "apps.py", "tests.py"]
        lines = (here / "weather" / "agents.py").read_text().splitlines()
        assert len([line for line in lines if line]) <= 12

    def test_an_agent_in_the_name_is_not_said_twice(self, here: Path) -> None:
        startagent("weather_agent")
        assert "class WeatherAgent(Agent)" in (here / "weather_agent" / "agents.py").read_text()

    def test_may_go_into_an_empty_directory_anywhere(
        self, here: Path, tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        elsewhere = tmp_path_factory.mktemp("elsewhere") / "sky"
        elsewhere.mkdir()
        startagent("weather", str(elsewhere))
        assert 'name = "sky"' in (elsewhere / "apps.py").read_text()


class TestWhatIsSaid:
    def test_fits_where_there_is_no_makefile_and_callers_need_keys(
        self, settings: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        settings.A2A_ANONYMOUS = "0"
        monkeypatch.setenv("PORT", "8123")
        said = startagent("weather_report")
        assert "python manage.py up" in said
        assert "make dev" not in said
        assert "api_keys create me" in said
        assert (
            f"http://127.0.0.1:8123/agents/weather-report/ -H '{conf.API_KEY_HEADER}: KEY'" in said
        )

    def test_names_the_two_next_steps(self, here: Path) -> None:
        (here / "Makefile").touch()
        said = startagent("weather_report", "agents/sky")
        assert 'add "agents.sky" to INSTALLED_APPS' in said
        assert "A2A_APPS=" in said
        assert ",agents.sky make dev" in said
        assert "manage.py test agents.sky.tests" in said

    def test_its_curl_line_is_one_a_shell_understands(self) -> None:
        said = startagent("weather_report")
        line = said[said.index("curl -s") : said.index("`manage.py test")]
        words = shlex.split(line)
        assert words[:3] == ["curl", "-s", "http://127.0.0.1:8000/agents/weather-report/"]
        assert words[-1].startswith('{"jsonrpc":"2.0","id":1,"method":"SendMessage"')


class TestRefusals:
    @pytest.mark.parametrize(
        "name",
        ["Weather", "weather-report", "2day", "_x", "a__b", "a_", "", "a b", "../x", "ü", "a" * 64],
    )
    def test_a_bad_name_is_told_with_a_good_one(self, name: str) -> None:
        self.refused(name, "For example: weather_report")

    @pytest.mark.parametrize(
        ("name", "why"),
        [
            ("class", "a word of Python"),
            ("json", "A Python module is called 'json'"),
            ("a2a_push", "An app called 'a2a_push' is installed"),
            ("auth", "An app called 'auth' is installed"),
            ("tables", "/agents/tables/ already: examples.tables.agents.TablesAgent"),
        ],
    )
    def test_a_taken_name_is_told_with_who_has_it(self, name: str, why: str) -> None:
        self.refused(name, why)

    def test_a_missing_framework_is_told_with_the_command_for_this_interpreter(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(sys.modules, "langgraph", None)
        with pytest.raises(CommandError) as refusal:
            startagent("weather", "--kind", "langgraph")
        assert f"needs a package: {sys.executable} -m pip install 'langgraph" in str(refusal.value)

    def test_nothing_that_is_there_is_overwritten(self, here: Path) -> None:
        (here / "weather").mkdir()
        (here / "weather" / "agents.py").write_text("mine")
        for words in (["weather"], ["weather", "weather"]):
            with pytest.raises(CommandError, match="is there already"):
                startagent(*words)
        assert (here / "weather" / "agents.py").read_text() == "mine"

    @pytest.mark.parametrize(
        ("directory", "why"),
        [
            ("my-agents", "'my-agents' cannot be imported"),
            ("agents/auth", "An app called 'auth'"),
            ("json", "A Python module"),
        ],
    )
    def test_a_directory_that_could_not_be_imported_is_refused(
        self, directory: str, why: str
    ) -> None:
        self.refused("weather", why, directory)

    def test_without_a_name_it_says_how_it_is_called(self) -> None:
        with pytest.raises(CommandError, match="startagent weather_report"):
            startagent()

    def refused(self, name: str, why: str, *directory: str) -> None:
        """Expect this refusal, and that nothing was written."""
        with pytest.raises(CommandError) as refusal:
            startagent("--", name, *directory)
        assert why in str(refusal.value)
        assert list(Path.cwd().iterdir()) == []
