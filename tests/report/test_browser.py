"""The report as a person meets it: in a real browser, on a phone and on a laptop, by mouse and by keyboard."""

import re
import shutil
from pathlib import Path

import numpy as np
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
    names = ("tolerance-value", "kept", "calibration-kept", "error", "verdict", "why", "fills", "filled", "part0")
    return [text(driver, name) for name in names]


def table_of(driver, name):
    """The cells of a table's body, line by line."""
    lines = driver.find_elements(By.CSS_SELECTOR, f"#{name} tbody tr")
    return [[cell.text for cell in line.find_elements(By.XPATH, "*")] for line in lines]


def test_the_slider_moves_by_keyboard(browser, report, uneven):
    show(browser, report)
    slider = browser.find_element(By.ID, "tolerance")
    asked = readings(browser)
    assert asked[0] == "0.2"
    assert asked[4] == "✓ promised, as asked"
    assert not browser.find_element(By.ID, "other-mark").is_displayed()
    for _ in range(5):
        slider.send_keys(Keys.ARROW_RIGHT)
    moved = readings(browser)
    other = uneven.result_.at_tolerance(float(moved[0]))
    assert float(moved[0]) > 0.2
    assert moved[1] == f"{other.kept_share():.0%}"
    assert moved[3] == f"{other.selection.held_out_error:.3g}"
    assert browser.find_element(By.ID, "other-mark").is_displayed()
    assert slider.get_attribute("aria-valuetext") == f"{moved[0]}: could be promised, {moved[6]}"
    filled = f"{other.selection.n_filled:,.0f} of the {other.selection.n_missing:,.0f} missing cells"
    assert moved[7] == f"Fills {filled}"
    assert moved[6] == f"fills {moved[8]} of the {other.selection.n_missing:,.0f} missing cells"
    slider.send_keys(Keys.HOME)
    assert readings(browser)[4] == "✗ could not be promised"
    assert readings(browser)[6].startswith("fills none of the")
    assert "calibration cells do not allow to promise" in readings(browser)[5]
    browser.find_element(By.ID, "reset").click()
    assert readings(browser) == asked


def test_map_curve_examples_and_counts_follow_the_slider(browser, report, uneven):
    show(browser, report)
    slider, names = browser.find_element(By.ID, "tolerance"), ("examples", "by-row", "by-column")
    followers = [lambda name=name: table_of(browser, name) for name in names]
    followers += [lambda: picture(browser), lambda: browser.find_element(By.ID, "curve").get_attribute("points")]
    before = [follower() for follower in followers]
    slider.send_keys(*[Keys.ARROW_LEFT] * 12)
    after = [follower() for follower in followers]
    assert [one != other for one, other in zip(before, after, strict=True)] == [True] * 5
    other = uneven.result_.at_tolerance(float(text(browser, "tolerance-value")))
    lines = table_of(browser, "examples")
    rows, cols = ([int(line[k]) for line in lines] for k in (0, 1))
    told = [f"blank: {reason}" if reason else "filled" for reason in other.reasons(rows, cols)]
    assert [line[2] for line in lines] == told
    assert len(set(told)) > 2
    assert f"at tolerance {text(browser, 'tolerance-value')}" in text(browser, "scale-note")
    browser.find_element(By.ID, "reset").click()
    assert [follower() for follower in followers] == before


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


def told(driver):
    """What the read-out says: names, outcome, numbers."""
    return [text(driver, f"readout-{part}") for part in ("names", "kept", "numbers")]


def test_the_map_is_read_and_zoomed_by_keyboard(browser, report, uneven):
    show(browser, report)
    canvas = browser.find_element(By.ID, "canvas")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", canvas)
    canvas.send_keys(Keys.ARROW_DOWN, Keys.ARROW_RIGHT)
    names, outcome, numbers = told(browser)
    i, j = (int(name.partition(": ")[2]) for name in names.splitlines())
    answer, reason = uneven.result_.answer([i], [j]), uneven.result_.reasons([i], [j])[0]
    shown = float(re.search(r"confidence (\S+)", numbers)[1])
    assert shown == pytest.approx(answer.confidence[0], abs=0.02)
    assert outcome == (f"not kept: {reason}" if reason else "kept")
    canvas.send_keys("+", "+")
    assert text(browser, "zoom-level") == "2.6 times as large"
    canvas.send_keys("0")
    assert text(browser, "zoom-level") == ""
    canvas.send_keys(Keys.ESCAPE)
    assert not browser.find_element(By.ID, "readout").is_displayed()


def box(driver, name):
    return driver.execute_script("return document.getElementById(arguments[0]).getBoundingClientRect().toJSON()", name)


def apart(one, other):
    """Whether two boxes share no point."""
    beside = one["right"] <= other["left"] or other["right"] <= one["left"]
    return beside or one["bottom"] <= other["top"] or other["bottom"] <= one["top"]


@pytest.mark.parametrize("width", [PHONE, LAPTOP])
@pytest.mark.parametrize("across", [0.02, 0.5, 0.98])
@pytest.mark.parametrize("down", [0.02, 0.5, 0.98])
def test_the_read_out_is_beside_the_pointer(browser, report, width, across, down):
    show(browser, report, width)
    canvas = browser.find_element(By.ID, "canvas")
    browser.execute_script("document.getElementById('scale').scrollIntoView({block: 'start'}); scrollBy(0, -160)")
    map_box = box(browser, "canvas")
    x, y = map_box["left"] + across * map_box["width"], map_box["top"] + down * map_box["height"]
    y = min(y, 840)
    offset = x - map_box["left"] - map_box["width"] / 2, y - map_box["top"] - map_box["height"] / 2
    ActionChains(browser).move_to_element_with_offset(canvas, *map(int, offset)).perform()
    readout = browser.find_element(By.ID, "readout")
    assert readout.is_displayed()
    place = box(browser, "readout")
    assert 0 <= place["left"] < place["right"] <= width
    assert 0 <= place["top"] < place["bottom"] <= 844
    pointer = {"left": x - 2, "right": x + 2, "top": y - 2, "bottom": y + 2}
    near = {"left": x - 40, "right": x + 40, "top": y - 40, "bottom": y + 40}
    assert apart(place, pointer)
    assert not apart(place, near)
    assert apart(place, box(browser, "scale"))
    assert apart(place, box(browser, "bar"))
    browser.execute_script("scrollTo(0, 0)")
    WebDriverWait(browser, 5).until(lambda _: not readout.is_displayed())


def labels_at(driver, element):
    """Row and column under the middle of the element."""
    ActionChains(driver).move_to_element(element).perform()
    return text(driver, "readout-names").splitlines()


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


def test_the_legend_is_above_the_map_and_says_how_colours_are_chosen(browser, report, uneven):
    show(browser, report)
    assert box(browser, "scale")["bottom"] <= box(browser, "canvas")["top"]
    assert text(browser, "scale-note") == "Kept at tolerance 0.2."
    assert [text(browser, f"scale-{k}") for k in range(5)] == ["not kept", "", "", "", "kept"]
    browser.find_element(By.CSS_SELECTOR, "#layers input[value=risk]").click()
    assert "quantiles" in text(browser, "scale-note")
    risk = uneven.result_.risk_at(*np.indices((150, 60)).reshape(2, -1))
    shown = [float(text(browser, f"scale-{k}")) for k in range(5)]
    np.testing.assert_allclose(shown, np.quantile(risk, [0, 0.25, 0.5, 0.75, 1]), rtol=0.1)


def test_the_essentials_need_no_script(report, uneven):
    driver = start(script=False)
    try:
        size(driver, PHONE)
        driver.get(report.as_uri())
        assert driver.find_element(By.CSS_SELECTOR, "#frame img").is_displayed()
        assert driver.execute_script("return document.documentElement.scrollWidth") <= PHONE
        for name in ("bar", "canvas", "layers", "tools", "readout"):
            assert not driver.find_element(By.ID, name).is_displayed()
        assert driver.find_element(By.ID, "explorer").is_displayed()
        shown = driver.find_element(By.TAG_NAME, "main").text
        assert f"Fills {uneven.result_.selection.n_filled:,.0f} of the" in shown
        assert "blank: too little support" in shown
        for sentence in (uneven.result_.guarantee.sentence, uneven.result_.certificate.sentence, "Most trusted rows"):
            assert sentence in shown
        driver.find_element(By.TAG_NAME, "summary").click()
        assert "0.2 (asked)" in driver.find_element(By.TAG_NAME, "details").text
    finally:
        driver.quit()
