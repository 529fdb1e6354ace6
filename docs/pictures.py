"""The pictures of the front page and of the page about the report, made anew: ``make pictures``.

    python docs/pictures.py [demo] [digits] [report] [report-phone]

``demo`` and ``digits`` are what ``surefill demo`` draws; ``report`` and ``report-phone`` are taken from a page in a
browser and need chromium and chromedriver. Other pictures belong to measurements and are drawn by ``benchmarks/``.
"""

from __future__ import annotations

import argparse
import base64
import shutil
import tempfile
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
from surefill.reproduction.demo_story import demonstrate_blocks, demonstrate_digits

FOLDER = Path(__file__).parent

BLOCK_SIZE, BLOCK_TOLERANCE, IMAGES, SEED = 20, 0.25, 400, 0
"""Those of ``surefill demo`` where nothing else is asked."""

SHOWN = {"report": (1120, 900, "examples-heading"), "report-phone": (390, 844, "tolerance-heading")}
"""Width and height of the screen, and the heading above which the picture ends."""


def readers_and_books() -> sf.Observations:
    """Invented: two groups of readers, each with books of its own, some readers far more fickle than others."""
    seen = sf.datasets.make_blocks((50, 40), n_draws=5000, random_state=3).observations
    rng = np.random.default_rng(0)
    noise = rng.uniform(0, 0.77, 100) ** 2
    stars = np.clip(3 + 2 * (seen.values + rng.normal(size=len(seen)) * noise[seen.rows]), 1, 5)
    first, last = "Ada Bo Cleo Dev Esi Finn Gia Hal Ines Jun", "Abbot Brook Clay Dunn Ember Frost Grove Hale Ives Jay"
    kind, thing = (
        "Quiet Amber Winter Hollow Paper Distant Silver Broken Salt Velvet",
        "Harbour Orchard Lantern Meridian",
    )
    readers, books = (
        [" ".join(pair) for pair in product(one.split(), other.split())]
        for one, other in ((first, last), (kind, f"{thing} Compass Garden Ladder Tide"))
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


def photograph(page: Path, name: str) -> None:
    """The upper part of a report, the pointer on its map."""
    width, height, last = SHOWN[name]
    browser = open_browser()
    screen = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    browser.get(page.as_uri())
    WebDriverWait(browser, 20).until(lambda at: at.execute_script("return document.documentElement.dataset.ready"))
    place = "return document.getElementById(arguments[0]).getBoundingClientRect()"
    bottom = browser.execute_script(f"{place}.top - 30", last)
    # The whole part is on the screen, so that the read-out beside the pointer is where it belongs.
    screen["height"] = int(bottom)
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    if browser.execute_script(f"{place}.bottom", "canvas") < bottom:
        canvas = browser.find_element(By.ID, "canvas")
        ActionChains(browser).move_to_element_with_offset(canvas, -160, -90).perform()
    part = {"x": 0, "y": 0, "width": width, "height": bottom, "scale": 1}
    shot = browser.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True, "clip": part})
    (FOLDER / f"{name}.png").write_bytes(base64.b64decode(shot["data"]))
    browser.quit()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    every = ["demo", "digits", *SHOWN]
    parser.add_argument("names", nargs="*", default=every, help=", ".join(every))
    names = parser.parse_args().names

    def nobody_watches(_: Progress) -> None:
        return

    if "demo" in names:
        demonstrate_blocks(BLOCK_SIZE, BLOCK_TOLERANCE, SEED, nobody_watches, FOLDER / "demo.png")
    if "digits" in names:
        demonstrate_digits(IMAGES, SEED, nobody_watches, FOLDER / "digits.png")
    if set(names) & set(SHOWN):
        with tempfile.TemporaryDirectory() as folder:
            page = Path(folder) / "report.html"
            fitted = sf.PartialCompleter(0.3).fit(readers_and_books())
            sf.write_report(fitted, page, title="Readers and books")
            for name in SHOWN:
                if name in names:
                    photograph(page, name)


if __name__ == "__main__":
    main()
