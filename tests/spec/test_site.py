"""The site: built without a warning, no broken link, every rule within three clicks; and a real browser opens it from disk."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from quantspec_conformance.records import deviations, rendered
from quantspec_conformance.site.check import broken_links, links_of
from quantspec_conformance.site.stacks import stack_page
from quantspec_conformance.spec import rules

from ..browser import chromium

CLICKS = 3
#: One page of each kind.
KINDS = (
    "index", "impatient", "arriving", "0-terms", "5-quantize", "6-packing", "combinations", "combinations-sets", "rules",
    "differences", "values/e4m3", "values/q4s", "scales/ue8m0", "stores/packed_u32", "formats/nvfp4", "decisions/index",
    "decisions/0012-ties-to-even", "source/quantize", "values/index", "stacks/index", "stacks/torchao", "stacks/burn",
    "stacks/ggml", "stacks/matrix", "same-input",
)  # fmt: skip
WIDTHS = {"desktop": (1300, 900), "phone": (390, 800)}


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built once for all workers of a test run."""
    shared = (
        tmp_path_factory.getbasetemp().parent
        if "PYTEST_XDIST_WORKER" in os.environ
        else tmp_path_factory.mktemp("site")
    )
    out, done = shared / "site", shared / "site.done"
    try:
        out.mkdir()
    except FileExistsError:
        for _ in range(2400):
            if done.exists():
                break
            time.sleep(0.1)
    else:
        command = [sys.executable, "-m", "quantspec_conformance.site", str(out)]
        built = subprocess.run(command, capture_output=True, text=True, check=False)
        done.write_text(f"{built.returncode}\n{built.stdout}{built.stderr}", "utf-8")
    code, _, said = done.read_text("utf-8").partition("\n")
    assert code == "0", said
    return out / "html"


def test_no_link_is_broken_and_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    assert broken_links(site) == []


def test_broken_links_are_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        '<h1 id="top">A</h1><a href="b.html">1</a><a href="a.html#gone">2</a><a href="#top">3</a><a href="https://example.org">4</a>'
        '<script src="https://example.org/x.js"></script><img src="x.png"><link rel="canonical" href="https://example.org">',
        "utf-8",
    )
    assert broken_links(tmp_path) == [
        "a.html: b.html leads to no file",
        "a.html: a.html#gone leads to no anchor",
        "a.html: loads https://example.org/x.js from elsewhere",
        "a.html: x.png leads to no file",
    ]
    assert broken_links(tmp_path / "empty") == [f"{tmp_path / 'empty'}: no pages"]


def clicks_to(site: Path) -> dict[str, int]:
    """Fewest clicks from the front page to each link target, `page#anchor`."""
    found: dict[str, int] = {}
    frontier, seen = [site / "index.html"], {site / "index.html"}
    for clicks in range(1, CLICKS + 1):
        following: list[Path] = []
        for page in frontier:
            for link in links_of(page).links:
                path, _, anchor = link.partition("#")
                target = (page.parent / path).resolve() if path else page
                if not target.is_file() or target.suffix != ".html":
                    continue
                found.setdefault(f"{target.relative_to(site.resolve())}#{anchor}", clicks)
                if target not in seen:
                    seen.add(target)
                    following.append(target)
        frontier = following
    return found


def test_every_rule_is_within_three_clicks_of_the_front_page(site: Path) -> None:
    clicks = clicks_to(site)
    far = [rule_id for rule_id, (page, _) in rendered().items() if f"{page}.html#{rule_id}" not in clicks]
    assert far == []
    assert set(rendered()) == set(rules())


def test_every_anchor_is_the_id(site: Path) -> None:
    missing = [
        rule_id for rule_id, (page, _) in rendered().items() if rule_id not in links_of(site / f"{page}.html").anchors
    ]
    assert missing == []


def test_rules_and_stacks_lead_to_each_other(site: Path) -> None:
    """From a rule to the box of each stack that differs, and from the box back to the rule."""
    for row in deviations():
        page = f"{stack_page(row.stack)}.html"
        assert row.id in links_of(site / page).anchors
        for rule_id in row.rules:
            chapter = rendered()[rule_id][0]
            assert f"{page}#{row.id}" in links_of(site / f"{chapter}.html").links
            assert f"../{chapter}.html#{rule_id}" in links_of(site / page).links


# ---------------------------------------------------------------- a browser


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Headless Chromium. Skipped where there is none, unless QUANTSPEC_BROWSER=required."""
    yield from chromium(tmp_path_factory.mktemp("chromium"))


def opened(browser: Any, site: Path, page: str, width: str = "desktop") -> None:
    browser.set_window_size(*WIDTHS[width])
    browser.get("about:blank")  # the same page with another anchor would not be loaded anew
    name, _, anchor = page.partition("#")
    browser.get(f"{(site / f'{name}.html').as_uri()}{f'#{anchor}' if anchor else ''}")


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("page", KINDS)
def test_a_page_opens_fits_the_window_and_says_nothing_wrong(browser: Any, site: Path, page: str, width: str) -> None:
    opened(browser, site, page, width)
    assert browser.find_element("css selector", "h1").is_displayed()
    assert "quantspec" in browser.title
    wide, window = browser.execute_script(
        "return [document.documentElement.scrollWidth, document.documentElement.clientWidth]"
    )
    assert wide <= window, f"{page} is {wide} pixels wide in a window of {window}"
    wrong = [entry["message"] for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]
    assert wrong == []


def click(browser: Any, element: Any) -> None:
    """Click an element where it is: the page scrolls smoothly, and the driver does not wait for that."""
    browser.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", element)
    element.click()


def settled(read: Callable[[], Any]) -> Any:
    """What is read, once it no longer changes: pages scroll smoothly, results come one by one."""
    before, since = read(), time.monotonic()
    end = since + 20
    while time.monotonic() < end:
        time.sleep(0.05)
        now = read()
        if now != before:
            before, since = now, time.monotonic()
        elif now and time.monotonic() - since > 0.6:
            break
    return before


@pytest.mark.parametrize("rule_id", ["VAL-7", "QNT-4", "OPS-9", "CNF-6"])
def test_an_anchor_leads_to_its_rule(browser: Any, site: Path, rule_id: str) -> None:
    opened(browser, site, f"{rendered()[rule_id][0]}#{rule_id}")
    script = f"return document.getElementById('{rule_id}').getBoundingClientRect().top"
    top = settled(lambda: browser.execute_script(script))
    assert -5 <= top < WIDTHS["desktop"][1] / 2


def test_a_rule_is_reached_by_clicks_and_shows_its_source(browser: Any, site: Path) -> None:
    opened(browser, site, "index")
    click(browser, browser.find_element("link text", "Rule index"))
    click(browser, browser.find_element("css selector", "a[href$='5-quantize.html#QNT-4']"))
    assert browser.current_url.endswith("5-quantize.html#QNT-4")
    settled(lambda: browser.execute_script("return window.scrollY"))
    source = browser.find_element("css selector", "[id='QNT-4'] .qs-facts a[href*='source/quantize']")
    line = source.text.split(":")[1]
    click(browser, source)
    assert browser.current_url.endswith(f"source/quantize.html#L-{line}")
    assert "QNT-4" in browser.find_element("id", f"L-{line}").find_element("xpath", "./..").text


def results(browser: Any) -> list[str]:
    def read() -> list[str]:
        return [link.get_attribute("href") for link in browser.find_elements("css selector", "#search-results li a")]

    return list(settled(read))


@pytest.mark.parametrize(("words", "expected"), [("ties even", "2-values.html"), ("QNT-4", "5-quantize.html#QNT-4")])
def test_search_finds_from_disk(browser: Any, site: Path, words: str, expected: str) -> None:
    """An id leads to its rule before anything else; words to a page that has them."""
    opened(browser, site, "index")
    box = browser.find_element("css selector", "input[name=q]")
    box.send_keys(words)
    box.submit()
    found = results(browser)
    looked = found[:1] if "#" in expected else found
    assert any(expected in link for link in looked), found


def test_light_and_dark_are_two_colours(browser: Any, site: Path) -> None:
    opened(browser, site, "values/e4m3")
    colours = set()
    for theme in ("light", "dark"):
        browser.execute_script(f"document.body.dataset.theme = '{theme}'")
        body = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
        box = browser.execute_script("return getComputedStyle(document.querySelector('svg .qs-exponent')).fill")
        colours.add((body, box))
    assert len({body for body, _ in colours}) == len({box for _, box in colours}) == 2


def test_formulas_are_drawn(browser: Any, site: Path) -> None:
    opened(browser, site, "3-scales")
    sizes = browser.execute_script(
        "return [...document.querySelectorAll('math')].map("
        "m => [m.getBoundingClientRect().width, m.querySelectorAll('merror').length])"
    )
    assert sizes and all(width > 0 and errors == 0 for width, errors in sizes)


def test_dissent_unfolds(browser: Any, site: Path) -> None:
    opened(browser, site, "2-values#VAL-7")
    details = browser.find_element("css selector", "[id='VAL-7'] details.qs-dissent")
    item = details.find_element("css selector", "li")
    assert not item.is_displayed()
    click(browser, details.find_element("css selector", "summary"))
    assert item.is_displayed()


def test_the_matrix_scrolls_inside_and_its_first_column_stays(browser: Any, site: Path) -> None:
    opened(browser, site, "stacks/matrix", "phone")
    left, after, scrolled = browser.execute_script(
        "const box = document.querySelectorAll('.qs-scroll')[1], head = box.querySelector('tbody th');"
        "const left = head.getBoundingClientRect().left; box.scrollLeft = 200;"
        "return [left, head.getBoundingClientRect().left, box.scrollLeft]"
    )
    assert scrolled > 0 and abs(left - after) < 1


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_other_bits_are_seen_without_colour(browser: Any, site: Path, theme: str) -> None:
    opened(browser, site, "stacks/torchao#dev.torchao.mx-floor")
    browser.execute_script(f"document.body.dataset.theme = '{theme}'")
    other, same = browser.execute_script(
        "return ['.qs-other', '.qs-line span:not(.qs-other)'].map("
        "s => getComputedStyle(document.querySelector('#' + CSS.escape('dev.torchao.mx-floor') + ' ' + s)).borderTopWidth)"
    )
    assert float(other.removesuffix("px")) > float(same.removesuffix("px"))
