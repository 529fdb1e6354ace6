"""The page as a person meets it: in a real browser, on a phone and on a laptop, by mouse and by keyboard."""

from __future__ import annotations

import json
import re
import shutil
from urllib.parse import urlsplit

import pytest
from selenium import webdriver
from selenium.common.exceptions import NoSuchElementException, StaleElementReferenceException
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.wait import WebDriverWait

import surefill as sf
from surefill.service import Settings
from surefill.service.refit import report_name
from surefill.service.store import open_engine, writing
from surefill.service.store.tokens import create_token

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(
    not (CHROMIUM and DRIVER), reason="chromium and chromedriver are not on PATH: make test-browser installs them"
)
PHONE, LAPTOP = 390, 1440
MARKUP = "<img src=x onerror=alert(1)>"
"""The label of a column of the model that is served."""

REFUSED = re.compile(r"(status of|Status Error Code) (409|422)")
"""What a browser notes of a request that was refused, which the page tells in a sentence."""


@pytest.fixture(scope="module")
def browser():
    options = Options()
    options.binary_location = CHROMIUM
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(service=Service(executable_path=DRIVER), options=options)
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def served(serve, mixed_file, tmp_path_factory):
    """A service with a data set ``films``, whose model keeps a part and has a report."""
    folder = tmp_path_factory.mktemp("served")
    with serve(Settings(folder, poll_seconds=0.2), mixed_file) as client:
        (model,) = folder.glob("data-sets/films-*/model-*.surefill")
        sf.write_report(sf.load(model), model.parent / report_name(model.name))
        yield client


@pytest.fixture
def page(browser, served):
    """Opens an address of the service; at the end nobody has complained and nothing was asked of anybody else."""
    show(browser, served, "/")
    browser.get_log("browser"), browser.get_log("performance")
    yield lambda address, width=LAPTOP, scheme="light": show(browser, served, address, width, scheme)
    assert [entry["message"] for entry in browser.get_log("browser") if not REFUSED.search(entry["message"])] == []
    assert asked_hosts(browser) == {served.base_url.netloc.decode()}


def show(driver, client, address, width=LAPTOP, scheme="light"):
    screen = {"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": width == PHONE}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    feature = {"name": "prefers-color-scheme", "value": scheme}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
    driver.get("about:blank")
    driver.get(f"{str(client.base_url).rstrip('/')}{address}")
    until(driver, lambda: driver.execute_script("return document.documentElement.dataset.ready"))
    return driver


def asked_hosts(driver):
    events = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
    urls = [event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"]
    return {urlsplit(url).netloc for url in urls if url.startswith(("http", "ws"))}


def until(driver, happens, seconds=60):
    """What happens once it does; a part of the page that was fetched anew meanwhile is looked for again."""
    again = (NoSuchElementException, StaleElementReferenceException)
    return WebDriverWait(driver, seconds, ignored_exceptions=again).until(lambda _: happens())


def text(driver, selector):
    return driver.find_element(By.CSS_SELECTOR, selector).text


def type_in(driver, selector, keys):
    field = driver.find_element(By.CSS_SELECTOR, selector)
    field.clear()
    field.send_keys(keys)
    return field


def press(driver, selector):
    def pressed():
        button = driver.find_element(By.CSS_SELECTOR, selector)
        driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", button)
        button.click()
        return True

    until(driver, pressed)


def assert_fits(driver, width):
    assert driver.execute_script("return document.documentElement.scrollWidth") <= width
    wide = (
        "return [...document.querySelectorAll('main *')].filter(e => e.getBoundingClientRect().right > innerWidth + 1"
        " && !e.closest('.sections')).map(e => e.outerHTML)"
    )
    assert driver.execute_script(wide) == []
    clipped = (
        "return [...document.querySelectorAll('main select')].filter(e => { const whole = e.cloneNode(true);"
        " whole.style.cssText = 'position: absolute; width: max-content; max-width: none'; e.after(whole);"
        " const width = whole.offsetWidth; whole.remove(); return width > e.offsetWidth }).map(e => e.outerHTML)"
    )
    assert driver.execute_script(clipped) == []


@pytest.mark.parametrize("width", [PHONE, LAPTOP])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_open_and_fit_the_screen(page, width, scheme):
    driver = page("/", width, scheme)
    assert "films" in text(driver, "#list")
    assert_fits(driver, width)
    colour = driver.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert (colour == "rgb(255, 255, 255)") == (scheme == "light")
    driver = page("/page/data-sets/films?row=140", width, scheme)
    assert text(driver, "#promised .lead").startswith("✓ promised.")
    assert "Refused, and why" in text(driver, "#row-view")
    assert driver.find_element(By.ID, "still").is_displayed() != driver.find_element(By.ID, "rate-plot").is_displayed()
    assert driver.find_elements(By.CSS_SELECTOR, "#kept-plot canvas")
    for summary in driver.find_elements(By.TAG_NAME, "summary"):
        driver.execute_script("arguments[0].click()", summary)
    assert_fits(driver, width)


@pytest.mark.parametrize("width", [PHONE, LAPTOP])
def test_a_row_is_found_by_typing_and_chosen_by_keyboard_or_by_touch(page, served, width):
    driver = page("/page/data-sets/films", width)
    field = type_in(driver, "#row-input", "14")
    until(driver, lambda: "14" in text(driver, "#matches .chip") and "“14”" in text(driver, "#matches"))
    field.send_keys(Keys.ENTER)
    until(driver, lambda: "Row 14" in text(driver, "#row-view"))
    first = served.get("/v1/data-sets/films/recommendations", params={"row": "14", "n": 1}).json()
    assert text(driver, "#row-view tbody th") == first["recommendations"][0]["col"]
    press(driver, "#matches [data-row='140']")
    until(driver, lambda: "Row 140" in text(driver, "#row-view"))
    assert driver.find_element(By.ID, "row-input").get_attribute("value") == "140"
    assert driver.current_url.endswith("?row=140#row")
    type_in(driver, "#row-input", "absent" + Keys.ENTER)
    until(driver, lambda: "There is no row 'absent'" in text(driver, "#row-view"))


def test_labels_that_are_markup_are_shown_as_text(page, served):
    rows = (str(number) for number in range(150))
    asked = {"n": 100, "trusted": False}
    address = "/v1/data-sets/films/recommendations"
    best = {row: served.get(address, params={"row": row} | asked).json()["recommendations"][:10] for row in rows}
    row = next(row for row, cells in best.items() if MARKUP in [cell["col"] for cell in cells])
    driver = page(f"/page/data-sets/films?row={row}")
    assert MARKUP in text(driver, "#row-view")
    assert driver.find_elements(By.CSS_SELECTOR, "main img") == []


def test_a_data_set_is_made_and_a_file_uploaded_in_parts(page, served, tmp_path):
    driver = page("/")
    for name, value in (("name", "films"), ("low", "1"), ("high", "5"), ("tolerance", "0.5")):
        type_in(driver, f"[name={name}]", value)
    press(driver, "#new button")
    until(driver, lambda: "there is a data set 'films' already" in text(driver, "#new [data-problem]").lower())
    type_in(driver, "[name=name]", "fresh" + Keys.ENTER)
    until(driver, lambda: driver.current_url.endswith("/page/data-sets/fresh#add"))
    assert text(driver, "#promised .lead") == "○ Nothing is promised: no model is fitted yet."
    file = tmp_path / "stars.csv"
    lines = [f"user {k % 300},film {k // 300},{1 + k % 5}" for k in range(12_000)]
    file.write_text("\n".join(["user,film,stars", *lines]))
    driver.find_element(By.ID, "file").send_keys(str(file))
    assert text(driver, "#drop strong") == "stars.csv"
    press(driver, "#upload > button")
    until(driver, lambda: text(driver, "#told") == "✓ 12,000 observations of stars.csv are stored.")
    assert driver.find_element(By.ID, "bar").get_attribute("value") == "1"
    status = served.get("/v1/data-sets/fresh/status").json()
    assert (status["observations"], status["rows"], status["columns"]) == (12_000, 300, 40)
    until(driver, lambda: "12,000" in text(driver, "#live"))
    assert until(driver, lambda: driver.find_elements(By.CSS_SELECTOR, "#rate-plot canvas"))
    assert not driver.find_element(By.ID, "still").is_displayed()
    press(driver, "#upload > button")
    until(driver, lambda: "All of them had been stored before and were not stored again." in text(driver, "#told"))
    assert served.get("/v1/data-sets/fresh/status").json()["observations"] == 12_000


def test_a_line_that_cannot_be_read_is_named_and_what_is_stored_is_told(page, tmp_path, served):
    page("/")
    served.post("/v1/data-sets", json={"name": "broken", "bounds": {"low": 1, "high": 5}})
    driver = page("/page/data-sets/broken", PHONE)
    file = tmp_path / "stars.csv"
    lines = [f"user {k % 300},film {k // 300},{9 if k == 10_500 else 3}" for k in range(12_000)]
    file.write_text("\n".join(["user,film,stars", *lines]))
    driver.find_element(By.ID, "file").send_keys(str(file))
    press(driver, "#upload > button")
    problem = until(driver, lambda: text(driver, "#upload [data-problem]"))
    assert problem.startswith("✗ The file, line 10,502")
    assert problem.endswith("The 9,999 observations before it are stored, nothing after them.")
    assert served.get("/v1/data-sets/broken").json()["observations"] == 9_999
    assert_fits(driver, PHONE)


@pytest.mark.parametrize("width", [PHONE, LAPTOP])
def test_what_to_ask_is_suggested_and_answered(page, served, width):
    driver = page("/page/data-sets/films", width)
    before = served.get("/v1/data-sets/films/status").json()["observations"]
    press(driver, "#ask button")
    until(driver, lambda: len(driver.find_elements(By.CSS_SELECTOR, ".answer")) == 10)
    assert_fits(driver, width)
    type_in(driver, ".answer input[type=number]", "0.5" + Keys.ENTER)
    until(driver, lambda: "✓ stored 0.5" in text(driver, "#suggested"))
    assert served.get("/v1/data-sets/films/status").json()["observations"] == before + 1
    until(driver, lambda: f"{before + 1:,}" in text(driver, "#live"))


def test_the_report_is_shown_in_a_frame(page):
    driver = page("/page/data-sets/films")
    press(driver, "#report summary")
    frame = driver.find_element(By.TAG_NAME, "iframe")
    driver.execute_script("arguments[0].scrollIntoView()", frame)
    driver.switch_to.frame(frame)
    until(driver, lambda: driver.execute_script("return document.documentElement.dataset.ready"))
    assert "What is promised, and what is not" in text(driver, "main")
    driver.switch_to.default_content()


def test_jobs_are_asked_for_by_a_button(page, served):
    driver = page("/page/data-sets/films")
    press(driver, "#jobs button")
    assert until(driver, lambda: "asked for" in text(driver, "#job-list"))
    assert served.get("/v1/data-sets/films/jobs").json()["items"][0]["why"] == "asked for"


@pytest.mark.usefixtures("thorough")
@pytest.mark.parametrize("width", [PHONE, LAPTOP])
def test_from_a_file_to_a_promise_and_recommendations(page, served, triples, tmp_path, width):
    name = f"new-{width}"
    page("/")
    assert served.post("/v1/data-sets", json={"name": name, "tolerance": 0.1, "refit_after": 10**9}).status_code == 201
    driver = page(f"/page/data-sets/{name}", width)
    file = tmp_path / "ratings.tsv"
    file.write_text("\n".join(["reader\tbook\tstars", *(f"reader {i}\tbook {j}\t{y}" for i, j, y in triples)]))
    driver.find_element(By.ID, "file").send_keys(str(file))
    press(driver, "#upload > button")
    until(driver, lambda: f"✓ {len(triples):,} observations of ratings.tsv are stored." in text(driver, "#told"))
    press(driver, "#jobs button")
    until(driver, lambda: "asked for" in text(driver, "#job-list"))
    until(driver, lambda: text(driver, "#promised .lead").startswith("✓ promised."), 300)  # after jobs before it
    assert [job["state"] for job in served.get(f"/v1/data-sets/{name}/jobs").json()["items"]] == ["done"]
    type_in(driver, "#row-input", "reader 7" + Keys.ENTER)
    until(driver, lambda: "Row reader 7" in text(driver, "#row-view"))
    best = served.get(f"/v1/data-sets/{name}/recommendations", params={"row": "reader 7", "n": 1}).json()
    assert text(driver, "#row-view tbody th") == best["recommendations"][0]["col"]
    assert driver.find_element(By.CSS_SELECTOR, ".with-report").is_displayed()
    assert_fits(driver, width)


def test_a_service_that_is_gone_is_told_and_its_return_too(page):
    driver = page("/")
    lost = {"offline": True, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
    driver.execute_cdp_cmd("Network.emulateNetworkConditions", lost)
    assert until(driver, lambda: driver.find_element(By.ID, "lost").is_displayed())
    driver.execute_cdp_cmd("Network.emulateNetworkConditions", lost | {"offline": False})
    assert until(driver, lambda: not driver.find_element(By.ID, "lost").is_displayed())
    driver.get_log("browser")


def test_everything_can_be_reached_by_keyboard(page):
    driver = page("/page/data-sets/films")
    reached = []
    for _ in range(60):
        ActionChains(driver).send_keys(Keys.TAB).perform()
        at = driver.switch_to.active_element
        reached.append(at.get_attribute("id") or at.get_attribute("href") or at.text)
        outline = driver.execute_script("const s = getComputedStyle(arguments[0]); return s.outlineStyle", at)
        assert outline != "none" or at.get_attribute("type") == "file", reached
        if at.tag_name == "summary" and at.text == "Show it here":
            break
    for wanted in ("row-input", "strategy", "ask-row", "file", "Upload", "Fit now", "Show it here"):
        assert wanted in reached


def test_a_token_is_asked_for_and_exchanged_for_a_cookie(browser, serve, mixed_file, tmp_path):
    settings = Settings(tmp_path, require_token=True)
    engine = open_engine(settings.address)
    with writing(engine) as connection:
        token = create_token(connection, "read")[0]
    engine.dispose()
    with serve(settings, mixed_file) as client:
        driver = show(browser, client, "/", PHONE)
        assert driver.current_url.endswith("/page/sign-in")
        type_in(driver, "[name=token]", "sf_wrong" + Keys.ENTER)
        until(driver, lambda: "✗ This token is not known, or was revoked." in text(driver, "main"))
        type_in(driver, "[name=token]", token + Keys.ENTER)
        until(driver, lambda: "films" in text(driver, "#list"))
        assert driver.execute_script("return document.cookie") == ""
        assert token not in driver.execute_script("return JSON.stringify([sessionStorage, localStorage])")
        press(driver, "#list a")
        until(driver, lambda: "Adding observations needs a token that may write" in text(driver, "#add"))
        assert_fits(driver, PHONE)
        press(driver, ".top button")
        until(driver, lambda: driver.current_url.endswith("/page/sign-in"))
    driver.get_log("browser")
