"""The report: seconds to write, size, and milliseconds until a browser has loaded it, on a phone's width and a laptop's.

    python benchmarks/report.py [--data FOLDER] [blocks] [ml-100k] [ml-1m]

Loading is from the start of navigation to the end of the load event, of three. Needs chromium and chromedriver.
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


def load(browser: webdriver.Chrome, page: Path, width: int) -> str:
    screen = {"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    times = []
    for _ in range(3):
        browser.get(page.as_uri())
        times.append(browser.execute_script(LOADED))
    complaints, wide = len(browser.get_log("browser")), browser.execute_script(OVERFLOW)
    scroll = ", scrolls sideways" if wide else ""
    return f"{width} px: {min(times):.0f} to {max(times):.0f} ms, {complaints} console messages{scroll}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=["blocks", "ml-100k"], help="blocks, ml-100k, ml-1m")
    parser.add_argument("--data", type=Path, default=Path(__file__).parents[2] / "shared" / "data")
    given = parser.parse_args()
    browser = open_browser()
    with tempfile.TemporaryDirectory() as folder:
        for name in given.names:
            fitted = sf.PartialCompleter(TOLERANCES[name]).fit(observations(name, given.data))
            page, start = Path(folder) / f"{name}.html", time.perf_counter()
            sf.write_report(fitted, page, title=name)
            seconds, size = time.perf_counter() - start, page.stat().st_size / 1e6
            loads = "; ".join(load(browser, page, width) for width in WIDTHS)
            print(f"{name}: written in {seconds:.1f} s, {size:.2f} MB; {loads}")
    browser.quit()


if __name__ == "__main__":
    main()
