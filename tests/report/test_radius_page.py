"""The pictures and the page of the radii of a data set."""

from __future__ import annotations

import math
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np

from fgp_vnn.report.figures import PAGE, PAPER, inline_svg
from fgp_vnn.report.page import facts_line
from fgp_vnn.report.pictures import ImageLayout, draw
from fgp_vnn.report.point_page import AboutPoints
from fgp_vnn.report.radius_page import radius_page
from fgp_vnn.report.radius_plots import Radii, bin_edges, curve, histogram, save_both, side_by_side
from fgp_vnn.report.radius_set import PointRadius

HOSTILE = "<script>alert(1)</script>"


def make_radii(count: int = 12, *, labelled: bool = True) -> Radii:
    random = np.random.default_rng(3)
    rows = []
    for number in range(count):
        lower = float(random.uniform(0, 0.5))
        upper = math.inf if number % 4 == 3 else lower * 1.5
        y = number % 3 if labelled else None
        rows.append(PointRadius(number, y, 0, lower, upper, "timeout", HOSTILE, 1.0))
    return Radii(rows, "linf", 0.8)


class Page(HTMLParser):
    """The tags of a page, its ids and its references."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.references: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        values = dict(attrs)
        self.ids += [values["id"] or ""] if "id" in values else []
        self.references += [values[name] or "" for name in ("src", "href") if name in values]


def page_text() -> str:
    centre = np.linspace(0, 1, 196)
    inputs = centre, centre[::-1].copy()
    picture = draw("point 4", "from 3 to 5", ImageLayout(14, 14, 1), inputs, (0.0, 1.0))
    network = {"file": HOSTILE, "ReLUs": 11}
    return radius_page(AboutPoints(network, {"norm": "linf"}, [picture]), make_radii())


def test_the_page_needs_nothing_else_and_its_links_lead_somewhere() -> None:
    text = page_text()
    assert "http" not in text and not re.findall(r"url\((?!#)", text)
    page = Page(text)
    assert len(page.ids) == len(set(page.ids))
    for reference in page.references:
        assert reference.startswith(("data:", "#"))
        if reference.startswith("#") and len(reference) > 1:
            assert reference[1:] in page.ids


def test_the_page_has_its_sections_in_order_and_a_row_for_every_point() -> None:
    text = page_text()
    sections = re.findall(r'<section id="([^"]*)"', text)
    assert sections == ["summary", "plots", "settings", "counterexamples", "points"]
    assert text.count("<tr data-results=") == 12
    assert text.count("<svg") == 2 and text.count("data:image/png") == 3
    assert "1 of 9 counterexamples" in text


def test_names_cannot_run_in_the_page() -> None:
    text = page_text()
    assert HOSTILE not in text and Page(text).tags.count("script") == 1


def test_the_curve_of_a_picture_ends_where_bounds_end() -> None:
    radii = make_radii()
    farthest = max(row.lower for row in radii.rows)
    finite = [row.upper for row in radii.rows if row.upper <= radii.maximum]
    assert max(farthest, *finite) <= radii.farthest <= radii.maximum
    edges = bin_edges(radii)
    assert edges[0] == 0 and edges[-1] == radii.farthest
    assert Radii([], "l2", 0.3).farthest == 0.3


def test_the_axes_say_what_they_show() -> None:
    for labelled, words in ((True, "certified accuracy"), (False, "certified share")):
        plot = curve(make_radii(labelled=labelled), PAPER)
        (axes,) = plot.figure.axes
        assert words in axes.get_ylabel() and "radius" in axes.get_xlabel()
        assert ("classified correctly" in plot.description) == labelled
    (axes,) = histogram(make_radii(), PAPER).figure.axes
    labels = axes.get_legend_handles_labels()[1]
    assert "(3 farther away or not found)" in labels


def test_legends_stand_above_the_axes_and_inside_the_figure() -> None:
    for plot in (curve(make_radii(), PAPER), histogram(make_radii(), PAPER)):
        plot.figure.draw_without_rendering()  # lays it out
        (axes,) = plot.figure.axes
        legend = axes.get_legend()
        assert legend is not None
        around, whole = legend.get_window_extent(), plot.figure.bbox
        assert around.y0 >= axes.get_window_extent().y1
        assert around.y1 <= whole.y1 and whole.x0 <= around.x0 and around.x1 <= whole.x1


def test_the_page_and_its_plot_speak_of_inputs_nearer_than_the_radius() -> None:
    text = " ".join(page_text().split())
    assert text.count("have no other class nearer than the radius") >= 2
    assert "within the radius" not in text


def test_the_columns_of_the_points_are_explained() -> None:
    text = page_text()
    assert ">decided by</button>" in text and "Decided by: the method" in text


def test_the_outline_of_the_last_bar_is_whole() -> None:
    figure = histogram(make_radii(), PAPER).figure
    figure.draw_without_rendering()
    (axes,) = figure.axes
    right = max(float(patch.get_window_extent().x1) for patch in axes.patches)
    assert right + 2 < axes.get_window_extent().x1  # pixels


def test_legends_side_by_side_begin_at_the_same_height() -> None:
    rows = [row for row in make_radii().rows if math.isfinite(row.upper)]
    figure = side_by_side(Radii(rows, "l2", 0.8), PAPER)
    figure.draw_without_rendering()
    legends = [axes.get_legend() for axes in figure.axes]
    tops = [legend.get_texts()[0].get_window_extent().y0 for legend in legends if legend]
    assert len(tops) == 2 and abs(tops[0] - tops[1]) < 1  # pixels


def test_a_fact_without_a_value_is_left_out() -> None:
    assert facts_line({"cores": 2, "threads": "", "memory": "24 GiB"}) == "cores 2 · memory 24 GiB"


def test_the_drawn_steps_are_those_of_the_points() -> None:
    radii = make_radii(4)
    (axes,) = curve(radii, PAPER).figure.axes
    certified, possible = (np.asarray(line.get_ydata()) for line in axes.get_lines())
    right = sum(row.right for row in radii.rows) / 4
    assert certified[0] == possible[0] == right
    assert certified[-1] == 0 and (certified <= possible).all()


def test_colours_on_the_page_are_the_reader_s_choice() -> None:
    svg = inline_svg(curve(make_radii(), PAGE))
    assert "var(--series-1)" in svg and "var(--ink)" in svg
    assert not re.findall(r"#0[123]0[01]0\d", svg)


def test_both_pictures_are_saved_side_by_side(tmp_path: Path) -> None:
    save_both(make_radii(), PAPER, tmp_path / "radii.svg")
    text = (tmp_path / "radii.svg").read_text()
    assert "axes_1" in text and "axes_2" in text
