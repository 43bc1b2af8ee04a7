"""The page in a real browser: no error, no request, both widths, accessible.

    apt-get install chromium chromium-driver
    pip install selenium altair vl-convert-python; npm install axe-core
    AXE_CORE=node_modules/axe-core/axe.min.js python -m pytest -m heavy tests/report/test_browser.py

Skips itself where Chromium, its driver or selenium is missing; the accessibility check also without axe-core.
``SCREENSHOTS=folder`` keeps pictures to look at.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from analyzer.report import html, pictures
from analyzer.report.request import ReportContext, StepSpan, WindowOp
from analyzer.report.sections import tell
from analyzer.schema import OpTotal, Result
from tests.report import replays, results, stories

pytestmark = pytest.mark.heavy

WIDTHS = (375, 1440)
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-sync",
)
PAGES = (
    "late",
    "proven",
    "undecided",
    "clean",
    "losses",
    "timed",
    "hostile",
    "sample",
    "lanes",
    "program",
    "ops",
)
SAMPLE = "max_ops/paged_async"
SERIOUS = frozenset({"serious", "critical"})


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    webdriver = pytest.importorskip("selenium.webdriver")
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.skip("chromium or chromedriver is not installed")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    started = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    yield started
    started.quit()


def timed() -> Result:
    """The late report with times of ops."""
    slowest = [
        OpTotal(name=f"custom__op_{n}" + "_long" * n, count=n + 1, total_ns=(9 - n) * 10**6) for n in range(8)
    ]
    late = results.late()
    timeline = msgspec.structs.replace(late.timeline, timing_basis="host", slowest=slowest)
    return msgspec.structs.replace(late, timeline=timeline)


def page(name: str) -> str:
    if name == "sample":
        return html.render(
            tell(stories.sample_result("max_ops/paged_async"), stories.sample_context("max_ops/paged_async"))
        )
    if name == "hostile":
        payload = "".join(stories.HOSTILE)
        hostile = stories.changed(results.late(), lambda text: f"{payload}{text}")
        return html.render(tell(hostile, stories.hostile_context(payload)))
    if name in {"program", "ops"}:
        made = replays.of_program() if name == "program" else replays.of_ops()
        return html.render(tell(made, ReportContext()))
    context = stories.context_of([[f"line {n}" for n in range(7000)]] * 2)
    if name == "timed":
        steps = tuple(
            StepSpan(step=n, first_line=n, last_line=n + 1, launches=3, start_ns=0, end_ns=(n + 1) * 10**6)
            for n in range(1, 11)
        )
        return html.render(tell(timed(), ReportContext(excerpt=context.excerpt, steps=steps)))
    if name == "lanes":
        return html.render(tell(results.late(), ReportContext(excerpt=context.excerpt, window_ops=lanes())))
    return html.render(tell(results.ALL[name], context))


def lanes() -> tuple[Any, ...]:
    ops = [WindowOp(op=results.op("mul", n, 6300 + n), stream=str(n % 3)) for n in range(1, 40)]
    return (*ops, WindowOp(op=results.PAGED, stream="1"))


@pytest.fixture
def opened(browser: Any, tmp_path: Path, request: pytest.FixtureRequest) -> Any:
    name, width = request.param
    path = tmp_path / f"{name}.html"
    path.write_bytes(page(name).encode("utf-8", errors="backslashreplace"))
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    browser.get_log("browser")
    browser.get_log("performance")
    browser.get(path.as_uri())
    keep(browser, f"{name}-{width}")
    return browser


def keep(browser: Any, name: str) -> None:
    folder = os.environ.get("SCREENSHOTS")
    if folder:
        shot = browser.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True})
        Path(folder).joinpath(f"{name}.png").write_bytes(base64.b64decode(shot["data"]))


every_page = pytest.mark.parametrize(
    "opened", [(name, width) for name in PAGES for width in WIDTHS], indirect=True, ids=str
)


@every_page
def test_page_has_no_error_asks_nobody_and_fits(opened: Any) -> None:
    assert opened.get_log("browser") == []
    messages = [json.loads(entry["message"])["message"] for entry in opened.get_log("performance")]
    asked = [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]
    assert [url for url in asked if not url.startswith(("file://", "data:"))] == []
    assert len([url for url in asked if url.startswith("file://")]) == 1
    script = "return [document.documentElement.scrollWidth, document.documentElement.clientWidth]"
    wide, room = opened.execute_script(script)
    assert wide <= room


@every_page
def test_pictures_are_there_and_not_empty(opened: Any) -> None:
    if not pictures.available():
        pytest.skip("the extra `report` is not installed")
    script = (
        "return [...document.querySelectorAll('figure svg')].map(s => [s.getBoundingClientRect().width,"
        " s.getBoundingClientRect().height, s.querySelectorAll('path').length,"
        " s.querySelectorAll('text').length,"
        " [...s.querySelectorAll('text')].every(t => t.getBoundingClientRect().left >="
        " s.getBoundingClientRect().left - 1)])"
    )
    for width, height, shapes, texts, inside in opened.execute_script(script):
        assert width > 300
        assert height > 40
        assert shapes > 1
        assert texts > 0
        assert inside


@every_page
def test_axe_finds_no_serious_fault(opened: Any) -> None:
    axe = Path(os.environ.get("AXE_CORE", "node_modules/axe-core/axe.min.js"))
    if not axe.is_file():
        pytest.skip("axe-core is not installed (AXE_CORE)")
    opened.execute_script(axe.read_text(encoding="utf-8"))
    found = opened.execute_async_script("axe.run().then(arguments[arguments.length - 1])")
    serious = [one for one in found["violations"] if one["impact"] in SERIOUS]
    assert [(one["id"], one["nodes"][0]["html"][:200], one["help"]) for one in serious] == []
    assert len(found["passes"]) > 10


@pytest.mark.parametrize("opened", [("late", 1440)], indirect=True)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_colours_follow_the_reader_and_keep_their_contrast(opened: Any, scheme: str) -> None:
    features = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    opened.execute_cdp_cmd("Emulation.setEmulatedMedia", features)
    keep(opened, f"late-{scheme}")
    colours = opened.execute_script(
        "const c = getComputedStyle(document.body); const t = document.querySelector('figure svg text');"
        "return [c.backgroundColor, c.color, t ? getComputedStyle(t).fill : c.color]"
    )
    opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    page_colour, ink, label = colours
    assert (page_colour == "rgb(255, 255, 255)") == (scheme == "light")
    assert ink == label


@pytest.mark.parametrize("opened", [("late", 1440)], indirect=True)
def test_page_prints(opened: Any) -> None:
    printed = base64.b64decode(opened.execute_cdp_cmd("Page.printToPDF", {"printBackground": False})["data"])
    assert printed.startswith(b"%PDF")
    folder = os.environ.get("SCREENSHOTS")
    if folder:
        Path(folder).joinpath("late.pdf").write_bytes(printed)


@pytest.mark.parametrize("opened", [("late", 1440)], indirect=True)
def test_every_link_and_fold_is_reached_by_the_tab_key(opened: Any) -> None:
    keys = pytest.importorskip("selenium.webdriver.common.keys").Keys
    wanted = opened.execute_script(
        "return document.querySelectorAll('a[href], summary, [tabindex=\"0\"]').length"
    )
    body = opened.find_element("tag name", "body")
    seen: set[str] = set()
    for _ in range(wanted + 2):
        body.send_keys(keys.TAB) if not seen else opened.switch_to.active_element.send_keys(keys.TAB)
        seen.add(opened.switch_to.active_element.id)
    folded = "return document.querySelectorAll('details:not([open]) :is(a, [tabindex])').length"
    assert len(seen) >= wanted - opened.execute_script(folded)
