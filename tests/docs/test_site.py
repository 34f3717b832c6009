"""The documentation: it builds without a warning, its links work, and it is up to date."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import fgp_vnn
from fgp_vnn.base.errors import InputError
from fgp_vnn.cli.main import COMMANDS
from tests.helpers.places import PACKAGE, ROOT

DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]


class Page(HTMLParser):
    """The ids and the references of an HTML page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.references: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.ids.add(values.get("id") or "")
        self.references += [values[n] or "" for n in ("href", "src") if n in values]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built strictly: a warning is an error."""
    for module in ("mkdocs", "material", "mkdocstrings"):
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"needs {module}: pip install 'fgp-vnn[docs]'")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-d", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}  # of the theme, about its future
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    return folder


@pytest.mark.slow
def test_every_link_of_the_site_leads_somewhere(site: Path) -> None:
    pages = {path: Page(path.read_text()) for path in site.rglob("*.html")}
    assert len(pages) > 10
    dead = []
    for path, page in pages.items():
        for reference in page.references:
            parts = urlsplit(reference)
            if parts.scheme or path.name == "404.html":
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            known = pages.get(target)
            if not target.exists() or (
                parts.fragment and known and parts.fragment not in known.ids
            ):
                dead.append(f"{path.relative_to(site)}: {reference}")
    assert dead == []


@pytest.mark.slow
def test_the_site_asks_nothing_of_other_hosts_to_be_read(site: Path) -> None:
    for path in site.rglob("*.html"):
        loaded = re.findall(
            r'<(?:script|img|link rel="stylesheet")[^>]*"(https?:[^"]*)"', path.read_text()
        )
        assert loaded == []


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_link_leads_somewhere_in_plain_markdown(path: Path) -> None:
    for target in re.findall(r"\]\(([^)#]*)[^)]*\)", path.read_text()):
        if target and not target.startswith("http"):
            assert (path.parent / target).exists(), target


def test_every_figure_is_drawn_by_a_script_and_shown() -> None:
    scripts = " ".join(path.read_text() for path in (DOCS / "figures").glob("*.py"))
    pages = " ".join(path.read_text() for path in PAGES)
    figures = [path.name for path in (DOCS / "figures").glob("*.svg")]
    assert len(figures) >= 3
    for name in figures:
        assert f'"{name}"' in scripts and f"figures/{name}" in pages


def test_every_file_of_the_checker_is_named_where_it_is_explained() -> None:
    files = {path.name for path in (PACKAGE / "certificate" / "checker").glob("[!_]*.py")}
    (line,) = [
        line for line in (DOCS / "theory.md").read_text().splitlines() if "maxima.py" in line
    ]
    assert files == set(re.findall(r"`(\w+\.py)`", line))


def test_every_command_and_option_is_in_the_reference() -> None:
    """Written anew by: python docs/commands.py"""
    spec = importlib.util.spec_from_file_location("commands", DOCS / "commands.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert (DOCS / "reference" / "commands.md").read_text() == module.page()


def test_every_public_name_is_in_the_reference() -> None:
    text = (DOCS / "reference" / "api.md").read_text()
    assert set(fgp_vnn.__all__) <= set(re.findall(r"^::: fgp_vnn\.(\w+)$", text, re.MULTILINE))


def command_lines() -> Iterator[tuple[str, str]]:
    for path in PAGES:
        text = path.read_text().replace("\\\n", " ")
        for line in re.findall(r"^ *(?:\$ )?(fgp-vnn .*)$", text, re.MULTILINE):
            yield path.name, line


@pytest.mark.parametrize(("page", "line"), sorted(set(command_lines())))
def test_every_command_line_is_one_that_the_program_takes(page: str, line: str) -> None:
    from argparse import ArgumentParser

    words = shlex.split(line, comments=True)
    assert words[1] in COMMANDS

    class Parser(ArgumentParser):
        def error(self, message: str) -> None:  # type: ignore[override]
            raise InputError(message)

    parser = Parser()
    import_module(f"fgp_vnn.cli.{words[1].replace('-', '_')}").add_arguments(parser)
    parser.parse_args(words[2:])


def test_the_version_is_the_same_everywhere() -> None:
    assert f"version: {fgp_vnn.__version__}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"## {fgp_vnn.__version__}\n" in (ROOT / "CHANGELOG.md").read_text()


def test_the_readme_draws_the_layers_that_the_import_contract_checks() -> None:
    contract = (ROOT / "pyproject.toml").read_text().split("layers = [")[1].split("]")[0]
    layers = re.findall(r'"([^"]+)"', contract)
    drawn = re.findall(r"^    ([a-z]+(?: \| [a-z]+)?)  ", (ROOT / "README.md").read_text(), re.M)
    assert [name for name in drawn if name in layers] == layers and len(layers) > 10
