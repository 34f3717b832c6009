"""The report in a real browser: what it shows, and that it can be used without a mouse."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fgp_vnn.report.point_page import AboutPoints
from fgp_vnn.report.radius_page import radius_page
from fgp_vnn.report.radius_plots import Radii
from fgp_vnn.report.radius_set import PointRadius
from fgp_vnn.report.run_page import write_report
from tests.report.runs import make_comparison

pytestmark = pytest.mark.slow

# Keys, as the WebDriver standard codes them.
TAB, ENTER, ESCAPE = "\ue004", "\ue007", "\ue00c"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_report(make_comparison(tmp_path_factory.mktemp("report"))).as_uri()


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Headless Chromium, quiet on the network; skipped where there is none."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    driver = shutil.which("chromedriver")
    if not (chromium and driver):
        pytest.skip("needs Chromium: apt-get install chromium chromium-driver")
    webdriver = pytest.importorskip("selenium.webdriver", reason="needs pip install selenium")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for argument in (
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-background-networking",
        "--disable-dev-shm-usage",
        f"--user-data-dir={tmp_path_factory.mktemp('profile')}",
        "--window-size=1200,900",
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    service = webdriver.ChromeService(executable_path=driver)
    opened = webdriver.Chrome(options=options, service=service)
    yield opened
    opened.quit()


@pytest.fixture
def report(browser: Any, page: str) -> Any:
    """The page, freshly loaded, as a desktop with a light theme shows it."""
    show(browser, 1200, "light")
    browser.get(page)
    return browser


def show(browser: Any, width: int, scheme: str) -> None:
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    features = {"prefers-color-scheme": scheme, "prefers-reduced-motion": "reduce"}
    media = {"features": [{"name": name, "value": value} for name, value in features.items()]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    browser.execute_async_script("requestAnimationFrame(() => setTimeout(arguments[0]))")


def visible_rows(browser: Any) -> list[Any]:
    rows: list[Any] = browser.execute_script(
        "return [...document.querySelectorAll('#table tbody tr')].filter(r => !r.hidden)"
        ".map(r => r.cells[1].textContent)"
    )
    return rows


def press(browser: Any, *keys: str) -> None:
    from selenium.webdriver import ActionChains

    chain = ActionChains(browser)
    for key in keys:
        chain = chain.send_keys(key)
    chain.perform()


def test_it_loads_without_an_error_and_without_the_network(report: Any) -> None:
    assert [entry for entry in report.get_log("browser") if entry["level"] == "SEVERE"] == []
    requests = report.execute_script(
        "return performance.getEntriesByType('resource').map(e => e.name)"
        ".filter(name => !name.startsWith('data:'))"
    )
    assert requests == []
    assert report.find_element("id", "count").text == "30 of 30 instances"


def test_search_verdict_and_disagreements_filter_the_rows(report: Any) -> None:
    search = report.find_element("id", "search")
    search.send_keys("onnx/1 walk")
    assert visible_rows(report) == [f"onnx/{n}.onnx" for n in (10, 12, 16, 18)]
    assert report.find_element("id", "count").text == "4 of 30 instances"
    search.send_keys(ESCAPE)
    assert len(visible_rows(report)) == 30
    report.find_element("css selector", "#result option[value=timeout]").click()
    assert len(visible_rows(report)) == 6
    report.find_element("css selector", "#result option[value='']").click()
    report.find_element("id", "conflicts-only").click()
    assert visible_rows(report) == ["onnx/0.onnx"]


def test_a_column_sorts_both_ways_and_by_number(report: Any) -> None:
    header = report.find_elements("css selector", "#table thead th")[4]
    button = header.find_element("tag name", "button")
    button.click()
    assert header.get_attribute("aria-sort") == "ascending"
    assert visible_rows(report)[:3] == ["onnx/1.onnx", "onnx/2.onnx", "onnx/0.onnx"]
    button.click()
    assert header.get_attribute("aria-sort") == "descending"
    assert visible_rows(report)[-1] == "onnx/1.onnx"
    assert visible_rows(report)[0] in {"onnx/4.onnx", "<script>alert(1)</script>"}


def test_it_can_be_used_without_a_mouse(report: Any) -> None:
    press(report, TAB)
    assert report.switch_to.active_element.get_attribute("class") == "skip"
    press(report, "/")
    assert report.switch_to.active_element.get_attribute("id") == "search"
    press(report, *"onnx/7")
    assert visible_rows(report) == ["onnx/7.onnx"]
    press(report, ESCAPE)
    assert len(visible_rows(report)) == 30
    for _ in range(6):
        press(report, TAB)
    assert report.switch_to.active_element.text.startswith("category")
    press(report, TAB, TAB, TAB, TAB, ENTER)
    headers = report.find_elements("css selector", "#table thead th")
    assert headers[4].get_attribute("aria-sort") == "ascending"


def test_the_theme_follows_the_system_until_it_is_chosen(report: Any) -> None:
    def background() -> str:
        return str(report.execute_script("return getComputedStyle(document.body).backgroundColor"))

    light = background()
    show(report, 1200, "dark")
    dark = background()
    assert dark != light
    button = report.find_element("id", "theme")
    for expected, colour in (("light", light), ("dark", dark), ("auto", dark)):
        button.click()
        assert button.text == f"Theme: {expected}"
        assert background() == colour


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_stand_out_from_their_background(report: Any, scheme: str) -> None:
    """At least 4.5 to 1, as the guidelines for accessible pages ask."""
    show(report, 1200, scheme)
    low = report.execute_script(
        """
        const parse = (text) => text.match(/[\\d.]+/g).map(Number);
        const light = ([r, g, b]) => [r, g, b].map((v) => v / 255)
          .map((v) => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
          .reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
        const behind = (node) => {
          for (; node; node = node.parentElement) {
            const colour = parse(getComputedStyle(node).backgroundColor);
            if (colour.length < 4 || colour[3] > 0) return colour;
          }
          return [255, 255, 255];
        };
        const low = [];
        const names = "h1,h2,h3,p,a,td,th,button,label,li,.word,.why";
        for (const node of document.querySelectorAll(names)) {
          const pair = [light(parse(getComputedStyle(node).color)), light(behind(node))];
          const ratio = (Math.max(...pair) + .05) / (Math.min(...pair) + .05);
          if (ratio < 4.5) low.push([node.className || node.tagName, ratio.toFixed(2)].join(" "));
        }
        return [...new Set(low)];
        """
    )
    assert low == []


def test_a_phone_shows_all_without_scrolling_sideways(report: Any) -> None:
    show(report, 390, "light")
    width = report.execute_script("return document.documentElement.scrollWidth")
    assert width <= 390
    cell = report.find_element("css selector", "#table tbody td")
    label = report.execute_script("return getComputedStyle(arguments[0], '::before').content", cell)
    assert label == '"category"'


def test_pictures_and_plots_are_drawn(report: Any) -> None:
    sizes = report.execute_script(
        "return [...document.images].map(image => [image.complete, image.naturalWidth])"
    )
    assert sizes == [[True, 14]] * 3
    names = report.execute_script(
        "return [...document.querySelectorAll('svg')].map(svg => svg.getAttribute('aria-label'))"
    )
    assert [name.partition(".")[0] for name in names] == ["Cactus plot", "Scatter plot"]
    heights = report.execute_script(
        "return [...document.querySelectorAll('svg')].map(s => s.getBoundingClientRect().height)"
    )
    assert all(height > 100 for height in heights)


def test_the_page_of_radii_sorts_and_filters_as_well(browser: Any, tmp_path: Path) -> None:
    rows = [
        PointRadius(n, n, n, lower, 1.0, "tight" if n == 1 else "timeout", "walk", 0.1)
        for n, lower in enumerate((0.3, 0.99, 0.05))
    ]
    page = tmp_path / "radii.html"
    about = AboutPoints({"file": "n.onnx"}, {}, [])
    page.write_text(radius_page(about, Radii(rows, "l2", 1.0)), encoding="utf-8")
    browser.get_log("browser")
    browser.get(page.as_uri())
    assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []
    assert browser.find_element("id", "count").text == "3 of 3 points"
    browser.find_elements("css selector", "#table thead button")[3].click()
    assert visible_rows(browser) == ["2", "0", "1"]
    browser.find_element("css selector", "#result option[value=tight]").click()
    assert visible_rows(browser) == ["1"]
