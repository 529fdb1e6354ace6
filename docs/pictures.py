"""The pictures of the front page and of the page about the report, made anew: ``make pictures``.

    python docs/pictures.py [demo] [digits] [report] [report-map] [page]

``demo`` and ``digits`` are what ``surefill demo`` draws; ``report`` and ``report-map``, and ``page`` of a service, are
taken in a browser and need chromium and chromedriver. Other pictures belong to measurements and are drawn by
``benchmarks/``.
"""

from __future__ import annotations

import argparse
import base64
import shutil
import tempfile
import threading
from itertools import product
from pathlib import Path

import numpy as np
from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.support.wait import WebDriverWait

import surefill as sf
from surefill.loop import Progress
from surefill.reproduction.demo_story import demonstrate_blocks, demonstrate_digits, fit_digits
from surefill.service import Settings, make_server

FOLDER = Path(__file__).parent

NAMES = ["demo", "digits", "report", "report-map", "page"]
"""Pictures, as their files are called."""

TOLERANCE, PAGE_TOLERANCE = 0.15, 0.25
"""Asked for in the report and of the service, in squared stars."""

BLOCK_SIZE, BLOCK_TOLERANCE, IMAGES, SEED = 20, 0.25, 400, 0
"""Those of ``surefill demo`` where nothing else is asked."""

WIDTH, HEIGHT = 1120, 900
"""Of the screen on which the report is looked at."""


def readers_and_books() -> sf.Observations:
    """Invented: two groups of readers, each with books of its own, some readers far more fickle than others."""
    seen = sf.datasets.make_blocks((80, 60), n_draws=12_000, random_state=3).observations
    rng = np.random.default_rng(0)
    noise = rng.uniform(0, 0.77, 160) ** 2
    stars = np.clip(3 + 2 * (seen.values + rng.normal(size=len(seen)) * noise[seen.rows]), 1, 5)
    first = "Ada Bo Cleo Dev Esi Finn Gia Hal Ines Jun Kai Lena Milo Nia Otto Pia"
    last = "Abbot Brook Clay Dunn Ember Frost Grove Hale Ives Jay"
    kind = "Quiet Amber Winter Hollow Paper Distant Silver Broken Salt Velvet Copper Hidden"
    thing = "Harbour Orchard Lantern Meridian Compass Garden Ladder Tide Mirror Bridge"
    readers, books = (
        [" ".join(pair) for pair in product(one.split(), other.split())]
        for one, other in ((first, last), (kind, thing))
    )
    names = ("reader", "book", "stars")
    labels = {"row_labels": readers, "col_labels": books}
    return sf.Observations(seen.rows, seen.cols, stars, seen.shape, (1, 5), names=names, **labels)


def open_browser() -> webdriver.Chrome:
    options = Options()
    options.binary_location = str(shutil.which("chromium"))
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    return webdriver.Chrome(service=Service(executable_path=shutil.which("chromedriver")), options=options)


def photograph(names: list[str]) -> None:
    """A report in a browser: its upper part, and its map with the pointer on it."""
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        fitted = sf.PartialCompleter(TOLERANCE).fit(readers_and_books())
        sf.write_report(fitted, page, title="Readers and books")
        browser = open_browser()
        screen = {"width": WIDTH, "height": HEIGHT, "deviceScaleFactor": 1, "mobile": False}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
        browser.get(page.as_uri())
        WebDriverWait(browser, 20).until(lambda at: at.execute_script("return document.documentElement.dataset.ready"))
        if "report" in names:
            panel = "return document.getElementById('explorer').getBoundingClientRect().bottom"
            capture(browser, "report", browser.execute_script(panel) + 30)
        if "report-map" in names:
            browser.execute_script("document.getElementById('layers').scrollIntoView(); scrollBy(0, -90)")
            canvas = browser.find_element(By.ID, "canvas")
            ActionChains(browser).move_to_element_with_offset(canvas, -170, -120).perform()
            capture(browser, "report-map", HEIGHT)
        browser.quit()


def photograph_service() -> None:
    """The page of a data set, with a row that was looked up."""
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "books.surefill"
        sf.PartialCompleter(PAGE_TOLERANCE).fit(readers_and_books()).save(model)
        server = make_server(Settings(Path(folder) / "served", port=0), model)
        thread = threading.Thread(target=server.run, daemon=True)
        thread.start()
        browser = open_browser()
        screen = {"width": WIDTH, "height": HEIGHT, "deviceScaleFactor": 1, "mobile": False}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
        WebDriverWait(browser, 60).until(lambda _: server.started)
        port = server.servers[0].sockets[0].getsockname()[1]
        browser.get(f"http://localhost:{port}/page/data-sets/books?row=Ada%20Frost")
        WebDriverWait(browser, 20).until(lambda at: at.execute_script("return document.documentElement.dataset.ready"))
        bottom = browser.execute_script("return document.getElementById('row').getBoundingClientRect().bottom")
        browser.execute_script("document.querySelector('.sections').hidden = true")
        capture(browser, "page", bottom)
        browser.quit()
        server.should_exit = True
        thread.join()


def capture(browser: webdriver.Chrome, name: str, height: float) -> None:
    """What is on the screen, or as much of the page below it as is asked for."""
    top = browser.execute_script("return scrollY")
    part = {"x": 0, "y": top, "width": WIDTH, "height": height, "scale": 1}
    shot = browser.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": height > HEIGHT, "clip": part})
    (FOLDER / f"{name}.png").write_bytes(base64.b64decode(shot["data"]))


def nobody_watches(_: Progress) -> None:
    """The demo reports its progress, here to nobody."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=NAMES, help=f"some of {', '.join(NAMES)}; all where none is given")
    names = parser.parse_args().names
    if unknown := set(names) - set(NAMES):
        parser.error(f"there is no picture {min(unknown)!r}; there are {', '.join(NAMES)}")
    if "demo" in names:
        demonstrate_blocks(BLOCK_SIZE, BLOCK_TOLERANCE, SEED, nobody_watches, FOLDER / "demo.png")
    if "digits" in names:
        demonstrate_digits(*fit_digits(IMAGES, SEED, nobody_watches), FOLDER / "digits.png")
    if {"report", "report-map"} & set(names):
        photograph(names)
    if "page" in names:
        photograph_service()


if __name__ == "__main__":
    main()
