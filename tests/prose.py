"""The linter of prose. `make lint` and tests/unit/docs/test_prose.py run it.

A sentence begins with its subject or with a verb: "What the settings say" is "The limits in the settings". Docstrings
and comments make statements; they ask no questions. `PHRASES` are texts of the first edition of the console and of its
pages that readers had to read twice; glossary and pages have the words that took their place.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
#: Folders and files that are read.
CHECKED = (
    "a2a_console",
    "a2a_doors",
    "a2a_frameworks",
    "a2a_grpc",
    "a2a_project",
    "a2a_push",
    "a2a_tasks",
    "examples",
    "docs",
    "README.md",
    "CHANGELOG.md",
    "Makefile",
)
#: Records of the past, files of others, and golden files.
LEFT_OUT = re.compile(r"docs/requirements\.toml|/vendor/|/migrations/|/golden/")
BANNED = re.compile(
    r"(whoever|whatever|whichever|nobody|somebody|anybody|have|the same|what|who|whom|whose|which|whether|how|why)\b",
    re.IGNORECASE,
)
QUESTION = re.compile(
    r"(is|are|does|do|did|has|have|had|may|can|could|must|was|were|will|would|should)\b.*\?$",
    re.IGNORECASE | re.DOTALL,
)
SENTENCES = re.compile(r"(?<=[.!?:;])\s+|\n\s*\n")
#: Comments, tags and values of templates.
TAGS = re.compile(
    r"\{% comment.*?endcomment %\}|\{#.*?#\}|\{%.*?%\}|\{\{.*?\}\}|<(script|style).*?</\1>|<.*?>",
    re.DOTALL,
)
#: Arguments and names whose texts people read.
HELP = {"help", "help_text", "description", "short_description", "hint", "epilog", "summary"}
_PHRASES = (
    "took at most",
    "oldest of them",
    "of those settled",
    "due one has waited",
    "stands? where (it|they) do",
    "at work on it",
    "said something last",
    "holds it until",
    "nobody in particular",
    "vouched",
    "came by:",
    "work for people",
    r"nobody.s\b",
    r"everybody.s\b",
    r"sees? to it\b",
    "seen to by",
    "the chosen ones",
    "take me back",
    "is in a state for that",
    "will be tried although",
    "told up to",
    "looked at again",
    "shown to nobody",
    "as they were sealed",
    "was cut short",
    "say what stands in cards",
    "each generation reads",
    "as if there were no such agent",
    "whatever stands here",
    "among the newest 100,000",
    r"empty: as\b",
    "the host.s only one",
    "every dialect published",
    "have the host tell",
    "is none to it",
    "come back later",
    "no sign of life",
    "not getting through",
    r"(the|a|its) bell\b",
    r"bell (is|did|of)\b",
    "came to nothing",
    "runs of no queue",
    "be part of a URL",
    "says it louder",
    "knows this host from",
    "browsers come with",
    r"still opens\b",
    "refused in words",
    "the phone rings",
    r"a deaf\b",
    r"the way out\b",
    "called at night",
    "hurt a host",
    r"let people in\b",
    "may import whom",
    "whose it is",
    "the chosen tasks",
    r"any of these\.",
    r"made (then or later|from then on)",
    "queue of its class",
)
#: A phrase may go over the end of a line, also in a comment.
PHRASES = re.compile(
    r"\b({})".format("|".join(phrase.replace(" ", r"[\s#/*]+") for phrase in _PHRASES)),
    re.IGNORECASE,
)


def find(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the line and the text of each flaw in a file."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        yield from _find_in_code(text)
    elif path.suffix == ".md":
        yield from _find_in_page(text)
    elif path.suffix == ".html":
        yield from _find_in_page(TAGS.sub(lambda tag: "\n" * tag[0].count("\n"), text))
    for match in PHRASES.finditer(text):
        yield text.count("\n", 0, match.start()) + 1, f"old phrase: {match[0]}"


def find_flaws(text: str) -> list[str]:
    """The sentences of a text that begin with a word that hides their subject, or that ask."""
    sentences = (sentence.strip().lstrip("-*#> `\"'(") for sentence in SENTENCES.split(text))
    return [s for s in sentences if BANNED.match(s) or QUESTION.match(s)]


def _find_in_code(source: str) -> Iterator[tuple[int, str]]:
    for line, text in (*_read_strings(ast.parse(source)), *_read_comments(source)):
        for flaw in find_flaws(text):
            yield line, flaw.splitlines()[0]


def _read_strings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield docstrings, and the texts that commands, forms and pages show as help."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            if text := ast.get_docstring(node):
                yield node.body[0].lineno, text
        elif isinstance(node, ast.keyword) and node.arg in HELP:
            yield from _read_constants(node.value)
        elif isinstance(node, ast.Raise) and node.exc:
            yield from _read_constants(node.exc)
        elif isinstance(node, ast.Assign) and any(
            isinstance(target, ast.Name) and target.id in HELP for target in node.targets
        ):
            yield from _read_constants(node.value)


def _read_constants(node: ast.AST) -> Iterator[tuple[int, str]]:
    for part in ast.walk(node):
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            yield part.lineno, part.value


def _read_comments(source: str) -> Iterator[tuple[int, str]]:
    """Yield the comments; lines that follow each other are one."""
    block: list[str] = []
    last = 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            line, alone = token.start[0], not token.line[: token.start[1]].strip()
            if block and not (alone and line == last + 1):
                yield last - len(block) + 1, "\n".join(block)
                block = []
            block.append(re.sub(r"^(#:? ?|# noqa.*)", "", token.string))
            last = line
    if block:
        yield last - len(block) + 1, "\n".join(block)


def _find_in_page(text: str) -> Iterator[tuple[int, str]]:
    """Yield the flaws of a page's paragraphs and lists; headings may ask."""
    shown = re.sub(r"```.*?```", lambda code: "\n" * code[0].count("\n"), text, flags=re.DOTALL)
    for number, line in enumerate(shown.splitlines(), 1):
        if not line.startswith(("#", "|", "<")):
            for sentence in find_flaws(line):
                if not sentence.endswith("?"):
                    yield number, sentence


def read_all() -> list[str]:
    """The flaws of all files, each with its place."""
    paths = (
        path
        for name in CHECKED
        for path in ([ROOT / name] if (ROOT / name).is_file() else sorted((ROOT / name).rglob("*")))
        if path.suffix in {".py", ".md", ".html", ".txt", ".js", ".css", ""} and path.is_file()
    )
    return [
        f"{path.relative_to(ROOT)}:{line}: {text}"
        for path in paths
        if not LEFT_OUT.search(str(path.relative_to(ROOT)))
        for line, text in sorted(find(path))
    ]


def main() -> int:
    """Print the flaws; 1 if there are any."""
    flaws = read_all()
    sys.stdout.writelines(f"{line}\n" for line in flaws)
    return 1 if flaws else 0


if __name__ == "__main__":
    sys.exit(main())
