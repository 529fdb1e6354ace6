"""The report: seconds to write, size, and milliseconds until a browser has loaded it, at two widths.

    python benchmarks/report.py [--data FOLDER] [blocks] [ml-100k] [ml-1m]

Loading is from the start of navigation to the end of the load event, three times. Needs chromium and chromedriver.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from pathlib import Path

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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=["blocks", "ml-100k"], help="blocks, ml-100k, ml-1m")
    parser.add_argument("--data", type=Path, default=Path(__file__).parents[2] / "shared" / "data")
    given = parser.parse_args()
    browser = open_browser()
    with tempfile.TemporaryDirectory() as name:
        for each in given.names:
            print(measure(browser, each, given.data, Path(name)))
    browser.quit()


if __name__ == "__main__":
    main()
