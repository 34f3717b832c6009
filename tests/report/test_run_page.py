from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import pytest

from fgp_vnn.base.errors import InputError
from fgp_vnn.bench.journal import open_journal
from fgp_vnn.bench.record import Record
from fgp_vnn.bench.rules import Standing
from fgp_vnn.bench.score import Disagreement
from fgp_vnn.cli.main import main
from fgp_vnn.report.page import Page, render
from fgp_vnn.report.run_page import disagreements_section, write_report
from tests.helpers.bench_folders import make_folder
from tests.helpers.places import ROOT
from tests.report.runs import HOSTILE, make_comparison


class Tags(HTMLParser):
    """All tags with their attributes, and the ids."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def values(self, name: str) -> list[str]:
        return [attrs[name] or "" for _, attrs in self.tags if name in attrs]


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A comparison with its report."""
    folder = make_comparison(tmp_path_factory.mktemp("comparison"))
    write_report(folder)
    return folder


@pytest.fixture(scope="module")
def text(out: Path) -> str:
    """The page of the comparison."""
    return (out / "report.html").read_text()


def test_the_page_is_complete_in_itself(text: str) -> None:
    assert "http" not in text
    assert "@import" not in text
    assert not re.findall(r"url\((?!#)", text)
    tags = Tags(text)
    for reference in tags.values("src"):
        assert reference.startswith("data:")
    for reference in tags.values("href"):
        if reference.startswith("#"):
            assert reference[1:] in tags.values("id")


def test_no_id_is_there_twice(text: str) -> None:
    ids = Tags(text).values("id")
    assert len(ids) == len(set(ids))


def test_disagreements_come_first(text: str) -> None:
    sections = re.findall(r'<section id="([^"]*)"', text)
    assert sections == [
        "disagreements",
        "summary",
        "plots",
        "categories",
        "breakdown",
        "counterexamples",
        "origin",
        "instances",
    ]
    assert "1 instance with a wrong verdict" in text
    assert "Wrong: other" in text


def test_names_cannot_run_in_the_page(text: str) -> None:
    assert HOSTILE not in text
    assert "&lt;script&gt;" in text
    assert [tag for tag, _ in Tags(text).tags].count("script") == 1


def test_every_instance_has_a_row_and_every_point_a_name(text: str) -> None:
    assert len(re.findall(r"<tr[^>]* data-results=", text)) == 30
    scatter = text[text.index("scatter-other-points-unsat") :]
    assert "<title>images onnx/1.onnx vnnlib/p.vnnlib</title>" in scatter
    alone = text[text.index("scatter-other-points-sat") :]
    assert "<title>images onnx/0.onnx vnnlib/p.vnnlib</title>" in alone


def test_plots_are_on_disk_as_well(out: Path) -> None:
    names = sorted(path.name for path in (out / "plots").iterdir())
    suffixes = ("png", "svg", "txt")
    assert names == [f"{name}.{s}" for name in ("cactus", "scatter-other") for s in suffixes]
    drawn = [path for path in (out / "plots").iterdir() if path.suffix != ".txt"]
    assert all(path.stat().st_size > 5000 for path in drawn)


def test_captions_say_how_times_were_measured(out: Path, text: str) -> None:
    caption = (out / "plots" / "scatter-other.txt").read_text()
    assert "Times of ours: a process of its own for each instance" in caption
    assert "start-up 1.05 s (1.00 to 1.10)" in caption
    assert "ours and other, on 23 instances solved by both: ours is faster" in caption
    assert caption.partition(". ")[2].strip() in unescape(text)


def test_the_summary_says_rules_known_answers_and_scores_by_category(text: str) -> None:
    assert "The true answer is known for 1 of\n30 instances" in text
    assert "VNN-COMP 2026: inputs to 0.0001, outputs exact" in text
    section = text[text.index('<section id="categories"') : text.index('<section id="breakdown"')]
    assert re.findall(r">([\d.-]+)</span>", section) == ["100.0", "33.3"]


def test_a_row_links_to_the_files_of_its_instance(out: Path, text: str) -> None:
    links = re.findall(r'<a class="file" href="([^"]*)">counterexample</a>', text)
    assert links == ["ours/counterexamples/images-0-p-0df8ec20.txt"]
    assert (out / links[0]).is_file()


def test_a_counterexample_is_shown_as_a_picture(text: str) -> None:
    assert "1 of 1 counterexample, as images." in text
    assert text.count("data:image/png;base64,") == 3


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of one tool, with its report: one instance solved, a late answer, a tolerated one."""
    folder = tmp_path_factory.mktemp("plain")
    benchmark = make_folder(folder / "cat", ["x", "y", "z"])
    names = ("vnnlib/prop.vnnlib", 5.0)
    near: dict[str, Standing] = {"2026": "tolerated"}
    with open_journal(folder / "out", {"benchmark": str(benchmark)}) as journal:
        journal.append(Record("cat", "onnx/0-x.onnx", *names, "timeout", 6.0, late="sat"))
        reason = "counterexample outside the box by 1.4e-08"
        sat = Record("cat", "onnx/1-y.onnx", *names, "sat", 1.0, reason=reason, confirmed=False)
        journal.append(replace(sat, standings=near))
        journal.append(Record("cat", "onnx/2-z.onnx", *names, "unsat", 1.0))
    write_report(folder / "out")
    return folder / "out"


def test_a_late_answer_and_one_within_tolerance_are_marked(plain: Path) -> None:
    text = (plain / "report.html").read_text()
    assert '<span class="warn-mark">late: sat</span>' in text
    assert '<span class="warn-mark">within tolerance</span>' in text
    assert "outside the box by 1.4e-08" in text


def test_a_plain_run_has_a_report_without_scatter_plots(plain: Path) -> None:
    text = (plain / "report.html").read_text()
    assert "None among 3 instances." in text
    assert "scatter" not in text.lower()


def test_solved_by_no_other_tool_is_a_column_only_if_there_is_another_tool(
    plain: Path, text: str
) -> None:
    assert ">unique</th>" in text and "Unique: solved by no other tool." in text
    alone = (plain / "report.html").read_text()
    assert ">solved</th>" in alone and "unique" not in alone.lower()


def test_few_instances_are_counted_in_whole_numbers(plain: Path) -> None:
    """The labels of an axis are comments in the file, those of the first axis first."""
    drawn = (plain / "plots" / "cactus.svg").read_text()
    labels = re.findall(r"<!-- ([\d.]+) -->", drawn.split('id="matplotlib.axis_2"')[0])
    assert labels and all(label.isdigit() for label in labels)


@pytest.fixture(scope="module")
def lacking(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A comparison whose benchmark is gone, whose second tool was timed otherwise and is not done;
    without a report."""
    folder = tmp_path_factory.mktemp("lacking")
    out = make_comparison(folder)
    (folder / "images").rename(folder / "gone")
    lines = out / "other" / "results.jsonl"
    lines.write_bytes(lines.read_bytes()[:-200])
    content = json.loads((out / "compare.json").read_text())
    content["timings"]["other"] |= {"kind": "published", "machine": "", "startup": []}
    (out / "compare.json").write_text(json.dumps(content))
    return out


def test_the_command_takes_another_year_and_opens_the_page_whatever_a_comparison_lacks(
    lacking: Path, text: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    assert main(["report", str(lacking), "--rules", "2023", "--open"]) == 0
    assert capsys.readouterr().out == f"{lacking / 'report.html'}\n"
    assert opened == [(lacking / "report.html").as_uri()]
    page = (lacking / "report.html").read_text()
    assert "VNN-COMP 2023: inputs to 0.0001, outputs to 0.0001" in page
    assert "No pictures: the benchmark cannot be read" in page
    assert len(re.findall(r"<tr[^>]* data-results=", page)) == 30
    bold = [re.findall(r'<td class="number best">([^<]*)</td>', each) for each in (text, page)]
    assert [len(cells) for cells in bold] == [4, 2]  # with and without median and PAR-2
    assert "their times are not ranked" not in text
    assert "their times are not ranked" in page and "neither is called faster" in page


def test_what_is_no_run_is_refused(tmp_path: Path, out: Path) -> None:
    with pytest.raises(InputError, match="neither a run nor a comparison"):
        write_report(tmp_path)
    with open_journal(tmp_path / "empty", {}):
        pass
    with pytest.raises(InputError, match="no results yet"):
        write_report(tmp_path / "empty")
    (tmp_path / "empty" / "compare.json").write_text("{")
    with pytest.raises(InputError, match=r"compare\.json: cannot be read"):
        write_report(tmp_path / "empty")
    with pytest.raises(InputError, match="no tool is named theirs; there are ours, other"):
        write_report(out, ours="theirs")


def test_a_report_is_written_without_torch(out: Path) -> None:
    code = (
        "import sys; from fgp_vnn.cli.main import main; import fgp_vnn.report.radius_page;"
        f"print(main(['report', {str(out)!r}]), 'torch' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stdout.splitlines()[-1] == "0 False"


@pytest.mark.parametrize("module", ["jinja2", "matplotlib.figure"])
def test_without_a_library_the_extra_is_named(
    out: Path, monkeypatch: pytest.MonkeyPatch, module: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(InputError, match=r"pip install 'fgp-vnn\[report\]'"):
        write_report(out)


def shown(conflicts: list[Disagreement]) -> str:
    return render(Page("", [], [disagreements_section(conflicts, 100)], []))


def test_a_long_list_of_disagreements_is_folded_after_the_worst() -> None:
    conflicts = [
        Disagreement(("cat", f"{n}.onnx", "p"), {"a": "sat", "b": "unsat"}, "", "", (), {})
        for n in range(60)
    ]
    worst = replace(conflicts[-1], key=("cat", "worst.onnx", "p"), truth="sat", wrong=("b",))
    text = shown([*conflicts, worst])
    assert "and 11 more" in text
    assert text.index("worst.onnx") < text.index("0.onnx")


def test_contradictions_that_nothing_decides_are_a_warning() -> None:
    conflict = Disagreement(("cat", "n", "p"), {"a": "sat", "b": "unsat"}, "", "", (), {})
    text = shown([conflict])
    assert "No verdict is wrong by the rules" in text
    assert "Wrong:" not in text
