from __future__ import annotations

import json
from pathlib import Path

import pytest

from fgp_vnn.base.errors import InputError
from fgp_vnn.bench.journal import open_journal, read_records, read_settings
from fgp_vnn.bench.record import Record

SETTINGS = {"timeout": 5.0, "device": "cpu"}


def record(number: int, result: str = "unsat") -> Record:
    return Record("cat", f"{number}.onnx", "p", 5.0, result, 0.25, decided_by="bounds")


def test_what_is_appended_is_there_when_opened_again(tmp_path: Path) -> None:
    with open_journal(tmp_path, SETTINGS) as journal:
        journal.append(record(1))
        journal.append(record(2))
    with open_journal(tmp_path, SETTINGS) as journal:
        assert list(journal.records.values()) == [record(1), record(2)]
    assert (tmp_path / "results.csv").read_text() == (
        "cat,1.onnx,p,0.000000,unsat,0.250000\ncat,2.onnx,p,0.000000,unsat,0.250000\n"
    )


@pytest.mark.parametrize("cut", [1, 2, 40])
def test_a_torn_last_line_is_cut_off_and_the_csv_follows(tmp_path: Path, cut: int) -> None:
    with open_journal(tmp_path, SETTINGS) as journal:
        journal.append(record(1))
        journal.append(record(2))
    lines = tmp_path / "results.jsonl"
    lines.write_bytes(lines.read_bytes()[:-cut])
    (tmp_path / "results.csv").write_text("cat,1.onnx,p,0.0")
    assert read_records(tmp_path) == [record(1)]
    with open_journal(tmp_path, SETTINGS) as journal:
        assert list(journal.records.values()) == [record(1)]
        journal.append(record(3))
    assert read_records(tmp_path) == [record(1), record(3)]
    assert len((tmp_path / "results.csv").read_text().splitlines()) == 2


def test_zeros_after_a_power_cut_are_cut_off(tmp_path: Path) -> None:
    with open_journal(tmp_path, SETTINGS) as journal:
        journal.append(record(1))
    with (tmp_path / "results.jsonl").open("ab") as file:
        file.write(bytes(500))
    with open_journal(tmp_path, SETTINGS) as journal:
        assert list(journal.records.values()) == [record(1)]


@pytest.mark.parametrize("line", ["{}", "[]", "null", "3"])
def test_a_broken_line_in_the_middle_is_refused_and_left_alone(line: str, tmp_path: Path) -> None:
    with open_journal(tmp_path, SETTINGS) as journal:
        journal.append(record(1))
    path = tmp_path / "results.jsonl"
    broken = f"{line}\n{path.read_text()}"
    path.write_text(broken)
    with (
        pytest.raises(InputError, match=r"results.jsonl:1: not a result"),
        open_journal(tmp_path, SETTINGS),
    ):
        pass
    assert path.read_text() == broken


def test_two_runs_at_once_are_refused(tmp_path: Path) -> None:
    with (
        open_journal(tmp_path, SETTINGS),
        pytest.raises(InputError, match=r"another run \(process \d+\) is writing"),
        open_journal(tmp_path, SETTINGS),
    ):
        pass
    with open_journal(tmp_path, SETTINGS):
        pass  # and the lock is gone with its holder


def test_other_settings_are_refused(tmp_path: Path) -> None:
    with open_journal(tmp_path, SETTINGS) as journal:
        journal.append(record(1))
    with (
        pytest.raises(InputError, match=r"begun with timeout 5.0, now 60.0"),
        open_journal(tmp_path, {**SETTINGS, "timeout": 60.0}),
    ):
        pass


def test_a_run_without_results_may_begin_again_with_other_settings(tmp_path: Path) -> None:
    """As after a --verifier that could not be loaded."""
    with open_journal(tmp_path, SETTINGS):
        pass
    with open_journal(tmp_path, {**SETTINGS, "timeout": 60.0}) as journal:
        journal.append(record(1))
    assert read_settings(tmp_path) == {**SETTINGS, "timeout": 60.0}


def test_settings_of_something_else_are_kept(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text('{"mine": 1}')
    with pytest.raises(InputError, match="begun with"), open_journal(tmp_path, SETTINGS):
        pass
    assert (tmp_path / "run.json").read_text() == '{"mine": 1}'


def test_results_without_settings_are_refused(tmp_path: Path) -> None:
    (tmp_path / "results.jsonl").write_text("{}\n")
    with pytest.raises(InputError, match=r"no run\.json"), open_journal(tmp_path, SETTINGS):
        pass


def test_settings_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text("{")
    with (
        pytest.raises(InputError, match=r"run.json: cannot be read"),
        open_journal(tmp_path, SETTINGS),
    ):
        pass


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(InputError, match="cannot be used for output"),
        open_journal(tmp_path / "file" / "out", SETTINGS),
    ):
        pass


def test_a_counterexample_is_written_beside_and_named(tmp_path: Path) -> None:
    with open_journal(tmp_path, SETTINGS) as journal:
        stored = journal.append(record(1, "sat"), "sat\n((X_0 1.0))\n")
    assert (tmp_path / stored.counterexample).read_text() == "sat\n((X_0 1.0))\n"
    assert read_records(tmp_path) == [stored]


def test_errors_are_forgotten_only_when_asked(tmp_path: Path) -> None:
    with open_journal(tmp_path, SETTINGS) as journal:
        journal.append(record(1))
        journal.append(record(2, "error"))
    with open_journal(tmp_path, SETTINGS) as journal:
        assert len(journal.records) == 2
    with open_journal(tmp_path, SETTINGS, retry_errors=True) as journal:
        assert list(journal.records.values()) == [record(1)]
    assert read_records(tmp_path) == [record(1)]


def test_fields_of_a_later_version_are_passed_over(tmp_path: Path) -> None:
    line = json.dumps({**vars(record(1)), "colour": "blue"})
    (tmp_path / "results.jsonl").write_text(line + "\n")
    assert read_records(tmp_path) == [record(1)]


def test_texts_about_an_instance_are_files_that_are_named_after_it(tmp_path: Path) -> None:
    with open_journal(tmp_path, {}) as journal:
        both = journal.append(Record("cat", "a.onnx", "p.vnnlib", 1.0, "sat", 0.1), "sat", "said")
        none = journal.append(Record("cat", "b.onnx", "p.vnnlib", 1.0, "unsat", 0.1), "", " \n")
    assert both.counterexample.startswith("counterexamples/cat-a-p-")
    assert both.log.startswith("logs/cat-a-p-")
    assert (tmp_path / both.log).read_text() == "said"
    assert (none.counterexample, none.log) == ("", "")
    assert read_records(tmp_path) == [both, none]
