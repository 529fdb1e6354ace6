"""The report: seconds to write, size, and milliseconds until a browser has loaded it, at two widths.

    python benchmarks/report.py [--data FOLDER] [blocks] [ml-100k] [ml-1m]
    python benchmarks/report.py --picture docs/report.png

Loading is from the start of navigation to the end of the load event, three times. Needs chromium and chromedriver.
"""

from __future__ import annotations

import argparse
import base64
import shutil
import tempfile
import time
from itertools import product
from pathlib import Path

import numpy as np
from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service

import surefill as sf

TOLERANCES = {"blocks": 0.2, "ml-100k": 0.6, "ml-1m": 0.5}
WIDTHS = (390, 1440)
LOADED = "return performance.getEntriesByType('navigation')[0].loadEventEnd"
OVERFLOW = "return document.documentElement.scrollWidth > innerWidth"


def observations(name: str, data: Path) -> sf.Observations:
    if name == "blocks":
        return sf.datasets.make_blocks((20, 20), n_draws=900, noise=0.1).observations
    return sf.datasets.load_movielens(name, data)


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
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(service=Service(executable_path=shutil.which("chromedriver")), options=options)


def set_width(browser: webdriver.Chrome, width: int) -> None:
    screen = {"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)


def load(browser: webdriver.Chrome, page: Path, width: int) -> str:
    set_width(browser, width)
    times = []
    for _ in range(3):
        browser.get(page.as_uri())
        times.append(browser.execute_script(LOADED))
    complaints, wide = len(browser.get_log("browser")), browser.execute_script(OVERFLOW)
    scroll = ", scrolls sideways" if wide else ""
    return f"{width} px: {min(times):.0f} to {max(times):.0f} ms, {complaints} console messages{scroll}"


def measure(browser: webdriver.Chrome, name: str, data: Path, folder: Path) -> str:
    fitted = sf.PartialCompleter(TOLERANCES[name]).fit(observations(name, data))
    page, start = folder / f"{name}.html", time.perf_counter()
    sf.write_report(fitted, page, title=name)
    seconds, size = time.perf_counter() - start, page.stat().st_size / 1e6
    loads = "; ".join(load(browser, page, width) for width in WIDTHS)
    return f"{name}: written in {seconds:.1f} s, {size:.2f} MB; {loads}"


def take_picture(browser: webdriver.Chrome, target: Path, folder: Path) -> None:
    """The upper part of a report, down to the map."""
    fitted = sf.PartialCompleter(0.3).fit(readers_and_books())
    sf.write_report(fitted, folder / "report.html", title="Readers and books")
    set_width(browser, 1120)
    browser.get((folder / "report.html").as_uri())
    time.sleep(2)
    bottom = browser.execute_script("return document.getElementById('lines-heading').getBoundingClientRect().top - 30")
    part = {"x": 0, "y": 0, "width": 1120, "height": bottom, "scale": 1}
    shot = browser.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True, "clip": part})
    target.write_bytes(base64.b64decode(shot["data"]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=["blocks", "ml-100k"], help="blocks, ml-100k, ml-1m")
    parser.add_argument("--data", type=Path, default=Path(__file__).parents[2] / "shared" / "data")
    parser.add_argument("--picture", type=Path, help="only draw the picture of the documentation, to this file")
    given = parser.parse_args()
    browser = open_browser()
    with tempfile.TemporaryDirectory() as name:
        if given.picture is not None:
            take_picture(browser, given.picture, Path(name))
        else:
            for each in given.names:
                print(measure(browser, each, given.data, Path(name)))
    browser.quit()


if __name__ == "__main__":
    main()
