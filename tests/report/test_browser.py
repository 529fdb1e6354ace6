"""The report as a person meets it: in a real browser, on a phone and on a laptop, by mouse and by keyboard."""

import shutil
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.wait import WebDriverWait

from surefill import write_report

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(
    not (CHROMIUM and DRIVER), reason="chromium and chromedriver are not on PATH: make test-browser installs them"
)
PHONE, LAPTOP = 390, 1440


def start(script=True):
    options = Options()
    options.binary_location = CHROMIUM
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    if not script:
        options.add_experimental_option("prefs", {"profile.managed_default_content_settings.javascript": 2})
    return webdriver.Chrome(service=Service(executable_path=DRIVER), options=options)


@pytest.fixture(scope="module")
def browser():
    driver = start()
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def report(uneven, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    write_report(uneven, path, title="<script>console.error(1)</script>")
    return path


def size(driver, width):
    screen = {"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": width == PHONE}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)


def show(driver, report, width=LAPTOP):
    size(driver, width)
    driver.get(report.as_uri())
    WebDriverWait(driver, 10).until(lambda at: at.execute_script("return document.documentElement.dataset.ready"))
    return driver


def text(driver, name):
    return driver.find_element(By.ID, name).text


@pytest.mark.parametrize("width", [PHONE, LAPTOP])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_opens_without_complaints_and_fits_the_screen(browser, report, width, scheme):
    feature = {"name": "prefers-color-scheme", "value": scheme}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
    browser.get_log("browser")
    show(browser, report, width)
    assert browser.get_log("browser") == []
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    wide = (
        "return [...document.querySelectorAll('main *')].filter(e => e.getBoundingClientRect().right > innerWidth + 1)"
    )
    assert browser.execute_script(wide) == []
    colour = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert (colour == "rgb(255, 255, 255)") == (scheme == "light")
    assert browser.find_element(By.TAG_NAME, "h1").text == "<script>console.error(1)</script>"


def readings(driver):
    return [text(driver, name) for name in ("tolerance-value", "kept", "calibration-kept", "error", "verdict", "why")]


def test_the_slider_moves_by_keyboard(browser, report, uneven):
    show(browser, report)
    slider = browser.find_element(By.ID, "tolerance")
    asked = readings(browser)
    assert asked[0] == "0.2"
    assert asked[4] == "✓ Promised, as asked"
    assert not browser.find_element(By.ID, "other-mark").is_displayed()
    for _ in range(5):
        slider.send_keys(Keys.ARROW_RIGHT)
    moved = readings(browser)
    other = uneven.result_.at_tolerance(float(moved[0]))
    assert float(moved[0]) > 0.2
    assert moved[1] == f"{other.kept_share():.0%}"
    assert moved[3] == f"{other.selection.held_out_error:.3g}"
    assert browser.find_element(By.ID, "other-mark").is_displayed()
    assert slider.get_attribute("aria-valuetext").startswith(f"{moved[0]}: keeps {moved[1]}")
    slider.send_keys(Keys.HOME)
    assert readings(browser)[4] == "✗ Not promised"
    assert "calibration entries do not allow to promise" in readings(browser)[5]
    browser.find_element(By.ID, "reset").click()
    assert readings(browser) == asked


@pytest.mark.parametrize("width", [PHONE, LAPTOP])
def test_the_slider_moves_by_mouse(browser, report, width):
    show(browser, report, width)
    slider = browser.find_element(By.ID, "tolerance")
    before = readings(browser)
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", slider)
    ActionChains(browser).move_to_element_with_offset(slider, slider.size["width"] // 2 - 12, 0).click().perform()
    after = readings(browser)
    assert float(after[0]) > float(before[0])
    assert after[1] != before[1]


def test_the_map_is_read_and_zoomed_by_keyboard(browser, report, uneven):
    show(browser, report)
    canvas = browser.find_element(By.ID, "canvas")
    canvas.send_keys(Keys.ARROW_DOWN, Keys.ARROW_RIGHT)
    row, column, numbers = text(browser, "readout").splitlines()
    i, j = int(row.removeprefix("row: ")), int(column.removeprefix("column: "))
    sure, kept = uneven.predict_confidence([i], [j])[0], uneven.keep([i], [j])[0]
    assert f"confidence {sure:.2f}"[:-1] in numbers
    assert f"kept {'yes' if kept else 'no'}" in numbers
    canvas.send_keys("+", "+")
    assert text(browser, "zoom-level") == "2.6 times as large"
    canvas.send_keys("0")
    assert text(browser, "zoom-level") == ""


def labels_at(driver, element):
    """Row and column under the middle of the element."""
    ActionChains(driver).move_to_element(element).perform()
    return text(driver, "readout").splitlines()[:2]


def picture(driver):
    return driver.execute_script("return document.getElementById('canvas').toDataURL()")


@pytest.mark.parametrize("width", [PHONE, LAPTOP])
def test_the_map_is_read_zoomed_and_moved_by_mouse(browser, report, width):
    show(browser, report, width)
    canvas = browser.find_element(By.ID, "canvas")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", canvas)
    ActionChains(browser).move_to_element(canvas).perform()
    middle = text(browser, "readout")
    assert "confidence" in middle
    ActionChains(browser).move_to_element_with_offset(canvas, 60, 60).perform()
    assert text(browser, "readout") != middle
    whole = picture(browser)
    browser.find_element(By.ID, "zoom-in").click()
    assert "1.6 times" in text(browser, "zoom-level")
    closer = picture(browser)
    assert closer != whole
    for offset, moved in (((-60, 0), [False, True]), ((0, -60), [True, False])):
        before = labels_at(browser, canvas)
        ActionChains(browser).click_and_hold().move_by_offset(*offset).release().perform()
        after = labels_at(browser, canvas)
        assert [one != other for one, other in zip(before, after, strict=True)] == moved
    browser.find_element(By.ID, "zoom-all").click()
    assert text(browser, "zoom-level") == ""


def touch(driver, kind, *fingers):
    points = [{"x": x, "y": y, "id": k} for k, (x, y) in enumerate(fingers)]
    driver.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})


def test_two_fingers_zoom_the_map_and_one_scrolls_the_page(browser, report):
    show(browser, report, PHONE)
    canvas = browser.find_element(By.ID, "canvas")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", canvas)
    box = browser.execute_script("return arguments[0].getBoundingClientRect().toJSON()", canvas)
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    before = browser.execute_script("return scrollY")
    touch(browser, "touchStart", (x, y))
    for k in range(1, 12):
        touch(browser, "touchMove", (x, y - 8 * k))
    touch(browser, "touchEnd")
    WebDriverWait(browser, 5).until(lambda at: at.execute_script("return scrollY") > before)
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", canvas)
    touch(browser, "touchStart", (x - 20, y), (x + 20, y))
    for k in range(1, 6):
        touch(browser, "touchMove", (x - 20 - 8 * k, y), (x + 20 + 8 * k, y))
    touch(browser, "touchEnd")
    WebDriverWait(browser, 5).until(lambda at: "times as large" in text(at, "zoom-level"))
    assert browser.execute_script("return visualViewport.scale") == 1


def test_the_layers_of_the_map_differ(browser, report):
    show(browser, report)
    seen = {picture(browser)}
    for choice in browser.find_elements(By.CSS_SELECTOR, "#layers input")[1:]:
        choice.click()
        seen.add(picture(browser))
    assert len(seen) == 4
    assert text(browser, "scale-high") != "1.00"


def test_the_essentials_need_no_script(report, uneven):
    driver = start(script=False)
    try:
        size(driver, PHONE)
        driver.get(report.as_uri())
        assert driver.find_element(By.CSS_SELECTOR, "#frame img").is_displayed()
        assert driver.execute_script("return document.documentElement.scrollWidth") <= PHONE
        for name in ("explorer", "canvas", "layers", "tools", "readout"):
            assert not driver.find_element(By.ID, name).is_displayed()
        shown = driver.find_element(By.TAG_NAME, "main").text
        for sentence in (uneven.result_.guarantee.sentence, uneven.result_.certificate.sentence, "Most trusted rows"):
            assert sentence in shown
        driver.find_element(By.TAG_NAME, "summary").click()
        assert "0.2 (asked)" in driver.find_element(By.TAG_NAME, "details").text
    finally:
        driver.quit()
