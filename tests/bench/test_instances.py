from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from fgp_vnn.base.errors import InputError
from fgp_vnn.bench.instances import read_benchmark, select
from tests.helpers.bench_folders import make_folder


def test_line_ends_quotes_and_float_limits_are_read(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "cat", ["unsat", "sat"])
    (folder / "instances.csv").write_bytes(
        b'"./onnx/0-unsat.onnx","vnnlib/prop.vnnlib","210.0"\r\n'
        b"onnx/1-sat.onnx,./vnnlib/prop.vnnlib,60\r\n\r\n"
    )
    benchmark = read_benchmark(folder)
    assert not benchmark.problems
    assert [instance.timeout for instance in benchmark.instances] == [210.0, 60.0]
    assert benchmark.instances[0].key == ("cat", "onnx/0-unsat.onnx", "vnnlib/prop.vnnlib")


def test_files_that_are_there_only_packed_are_found(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "cat", ["unsat"])
    for path in [*folder.glob("*/*.onnx"), *folder.glob("*/*.vnnlib")]:
        path.with_name(path.name + ".gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    (instance,) = read_benchmark(folder).instances
    assert instance.network_files[0].endswith("0-unsat.onnx.gz")
    assert instance.property_file.endswith("prop.vnnlib.gz")


def test_a_packed_name_finds_the_plain_file(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "cat", ["unsat"])
    (folder / "instances.csv").write_text("onnx/0-unsat.onnx.gz,vnnlib/prop.vnnlib,1\n")
    assert read_benchmark(folder).instances[0].network_files[0].endswith("0-unsat.onnx")


def test_a_version_folder_has_the_category_of_its_parent(tmp_path: Path) -> None:
    make_folder(tmp_path / "acas" / "1.0", ["unsat"])
    assert read_benchmark(tmp_path).instances[0].category == "acas"
    assert read_benchmark(tmp_path / "acas" / "1.0").instances[0].category == "acas"


def test_folders_of_one_name_are_told_apart(tmp_path: Path) -> None:
    make_folder(tmp_path / "acas" / "1.0", ["unsat"])
    make_folder(tmp_path / "acas" / "2.0", ["unsat"])
    make_folder(tmp_path / "other", ["unsat"])
    benchmark = read_benchmark(tmp_path)
    categories = [instance.category for instance in benchmark.instances]
    assert categories == ["acas/1.0", "acas/2.0", "other"]
    assert len({instance.key for instance in benchmark.instances}) == 3


def test_a_results_table_is_a_list_of_instances(tmp_path: Path) -> None:
    make_folder(tmp_path / "cat", ["unsat"])
    table = tmp_path / "results.csv"
    table.write_text("cat,onnx/0-unsat.onnx,vnnlib/prop.vnnlib,0.1,unsat,2.5\n")
    (instance,) = read_benchmark(table, timeout=7.0).instances
    assert (instance.category, instance.timeout) == ("cat", 7.0)
    assert "no time limit" in read_benchmark(table).problems[0]


def test_a_row_may_name_several_networks(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "cat", ["unsat", "sat"])
    column = "[('f', 'onnx/0-unsat.onnx'), ('g', 'onnx/1-sat.onnx')]"
    (folder / "instances.csv").write_text(f'"{column}",vnnlib/prop.vnnlib,5\n')
    (instance,) = read_benchmark(folder).instances
    assert len(instance.network_files) == 2


def test_a_header_is_passed_over(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "cat", ["unsat"])
    table = folder / "instances.csv"
    table.write_text("onnx,vnnlib,timeout\n" + table.read_text())
    assert len(read_benchmark(folder).instances) == 1


def test_a_limit_given_by_hand_replaces_that_of_the_rows(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "cat", ["unsat"], timeout=100)
    assert read_benchmark(folder, timeout=2.5).instances[0].timeout == 2.5


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("onnx/0-unsat.onnx,vnnlib/prop.vnnlib", "got 2 fields"),
        ("onnx/0-unsat.onnx,vnnlib/prop.vnnlib,soon", "'soon' is not a positive number"),
        ("onnx/0-unsat.onnx,vnnlib/prop.vnnlib,0", "'0' is not a positive number"),
        ("onnx/0-unsat.onnx,vnnlib/prop.vnnlib,nan", "'nan' is not a positive number"),
        ("onnx/0-unsat.onnx,vnnlib/prop.vnnlib,inf", "'inf' is not a positive number"),
        ("onnx/0-unsat.onnx,vnnlib/prop.vnnlib,", "no time limit"),
        (",vnnlib/prop.vnnlib,1", "no network"),
        ("onnx/absent.onnx,vnnlib/prop.vnnlib,1", "missing: onnx/absent.onnx"),
        ("onnx/0-unsat.onnx,absent/p.vnnlib,1", "missing: absent/p.vnnlib"),
        ("onnx,vnnlib/prop.vnnlib,1", "missing: onnx"),
        ("\"[('f',\",vnnlib/prop.vnnlib,1", "not a list of named networks"),
        ("[],vnnlib/prop.vnnlib,1", "no network"),
        ("onnx/1-sat.onnx,vnnlib/prop.vnnlib,1", "the same instance as"),
    ],
)
def test_a_bad_row_is_a_problem_with_its_line_and_the_rest_stays(
    tmp_path: Path, row: str, message: str
) -> None:
    folder = make_folder(tmp_path / "cat", ["unsat", "sat"])
    (folder / "instances.csv").write_text(f"onnx/1-sat.onnx,vnnlib/prop.vnnlib,5\n{row}\n")
    benchmark = read_benchmark(folder)
    assert len(benchmark.instances) == 1
    (problem,) = benchmark.problems
    assert "instances.csv:2: " in problem
    assert message in problem


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"", "no instances"), (b"\xff\xff", "not UTF-8"), (b'"a', "not csv")],
)
def test_all_bad_tables_of_a_tree_are_listed(tmp_path: Path, content: bytes, message: str) -> None:
    make_folder(tmp_path / "good", ["unsat"])
    for name in ("bad", "worse"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "instances.csv").write_bytes(content)
    benchmark = read_benchmark(tmp_path)
    assert len(benchmark.instances) == 1
    assert [message in problem for problem in benchmark.problems] == [True, True]


def test_a_place_without_instances_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no instances\.csv"):
        read_benchmark(tmp_path)
    with pytest.raises(InputError, match="no such file or folder"):
        read_benchmark(tmp_path / "absent")


def test_instances_are_chosen_by_pattern_then_shuffled_then_cut(tmp_path: Path) -> None:
    instances = read_benchmark(make_folder(tmp_path / "cat", ["unsat", "sat"] * 10)).instances
    chosen = select(instances, pattern=r"-sat\.onnx")
    assert [instance.onnx for instance in chosen] == [f"onnx/{n}-sat.onnx" for n in range(1, 20, 2)]
    shuffled = select(instances, shuffle=3)
    assert shuffled != instances
    assert sorted(map(str, shuffled)) == sorted(map(str, instances))
    assert select(instances, shuffle=3, limit=4) == shuffled[:4]
    with pytest.raises(InputError, match="not a regular expression"):
        select(instances, pattern="(")


def test_the_published_benchmarks_are_read_without_a_problem(shared_data: Path) -> None:
    tables = sorted((shared_data / "vnncomp").glob("*/instances.csv"))
    assert len(tables) > 20
    for table in tables:
        benchmark = read_benchmark(table.parent)
        assert benchmark.instances
        assert benchmark.problems == ()


def test_the_published_tree_names_the_rows_whose_files_are_missing(shared_data: Path) -> None:
    benchmark = read_benchmark(shared_data / "vnncomp" / "vnnlib2_samples")
    assert len(benchmark.problems) == 1
    assert "monotonic_acasxu_2026" in benchmark.problems[0]
