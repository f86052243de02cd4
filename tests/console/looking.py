"""What is asked of any page: legible, named, reachable; computed in the page itself."""

from __future__ import annotations

from playwright.sync_api import Page

CONTRAST_MIN = 4.5

_LOW_CONTRAST = """(least) => {
  const parts = (text) => text.match(/[\\d.]+/g).map(Number);
  const solid = (node) => {
    for (let one = node; one; one = one.parentElement) {
      const [r, g, b, a = 1] = parts(getComputedStyle(one).backgroundColor);
      if (a === 1) return [r, g, b];
    }
    return [255, 255, 255];
  };
  const light = (rgb) => {
    const [r, g, b] = rgb.map((c) => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const low = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode.parentElement;
    if (!walker.currentNode.textContent.trim() || !node.checkVisibility() || node.closest("noscript, .skip")) continue;
    const one = light(parts(getComputedStyle(node).color).slice(0, 3));
    const other = light(solid(node));
    const ratio = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
    if (ratio < least) low.push(`${walker.currentNode.textContent.trim()}: ${ratio.toFixed(2)}`);
  }
  return low;
}"""

_UNNAMED = """() => {
  const wrong = [];
  const named = (node) => node.getAttribute("aria-label") || node.textContent.trim() || node.labels?.length ||
    (node.getAttribute("aria-labelledby") ?? "").split(" ").some((id) => document.getElementById(id)?.textContent);
  for (const node of document.querySelectorAll("button, a, input, svg[role=img], [role=meter], dialog, section"))
    if (!named(node)) wrong.push(node.outerHTML.slice(0, 80));
  for (const node of document.querySelectorAll("img:not([alt]), svg:not([role]):not([aria-hidden])"))
    wrong.push(node.outerHTML.slice(0, 80));
  for (const node of document.querySelectorAll("table"))
    if (!node.querySelector("thead th[scope=col]")) wrong.push("a table without column headers");
  const ids = [...document.querySelectorAll("[id]")].map((node) => node.id);
  if (new Set(ids).size !== ids.length) wrong.push("an id twice");
  if (document.querySelectorAll("h1").length !== 1) wrong.push("not one h1");
  if (!document.documentElement.lang) wrong.push("no language");
  if (document.querySelectorAll("[aria-live=assertive]").length) wrong.push("a live region that interrupts");
  return wrong;
}"""

_NAME = "(node) => `${node.closest('[id]')?.id} ${node.href ?? node.textContent.trim()}`"
"""By which a control is known here: where it is, and what it says."""

_CONTROLS = """() => [...document.querySelectorAll("a[href], button:enabled, input, summary")]
  .filter((node) => node.checkVisibility()).map(NAME)""".replace("NAME", _NAME)

_FOCUSED = """() => {
  const node = document.activeElement;
  if (node === document.body) return ["", true];
  return [(NAME)(node), getComputedStyle(node).outlineStyle !== "none"];
}""".replace("NAME", _NAME)

_OVERFLOWING = """() => [...document.querySelectorAll(".card, .fact, .notice")]
  .filter((node) => node.checkVisibility() && node.scrollWidth > node.clientWidth)
  .map((node) => node.textContent.trim().slice(0, 40))"""

_SHIFTS = """(milliseconds) => new Promise((done) => {
  const seen = [];
  const observer = new PerformanceObserver((list) => {
    for (const entry of list.getEntries())
      if (!entry.hadRecentInput) seen.push(entry.value);
  });
  observer.observe({ type: "layout-shift" });
  setTimeout(() => { observer.disconnect(); done(seen.reduce((sum, one) => sum + one, 0)); }, milliseconds);
})"""


def low_contrast(page: Page) -> list[str]:
    """Visible texts whose contrast is below what everybody can read."""
    found: list[str] = page.evaluate(_LOW_CONTRAST, CONTRAST_MIN)
    return found


def unnamed(page: Page) -> list[str]:
    """What a screen reader could not name, and other things that no page should have."""
    found: list[str] = page.evaluate(_UNNAMED)
    return found


def controls(page: Page) -> set[str]:
    """Everything that can be used now."""
    return set(page.evaluate(_CONTROLS))


def tabbed_through(page: Page) -> tuple[set[str], list[str]]:
    """What the Tab key reaches from the beginning of the page, and what of it does not show that it has the focus."""
    reached: set[str] = set()
    unseen: list[str] = []
    page.evaluate("() => { document.activeElement.blur(); getSelection().removeAllRanges(); scrollTo(0, 0); }")
    for _ in range(2 * len(controls(page)) + 5):
        page.keyboard.press("Tab")
        name, shown = page.evaluate(_FOCUSED)
        if not name or name in reached:
            break
        reached.add(name)
        if not shown:
            unseen.append(name)
    return reached, unseen


def scrolls_sideways(page: Page) -> bool:
    """Whether the page is wider than its window."""
    wide: bool = page.evaluate("() => document.documentElement.scrollWidth > innerWidth")
    return wide


def overflowing(page: Page) -> list[str]:
    """Boxes whose content sticks out of them."""
    found: list[str] = page.evaluate(_OVERFLOWING)
    return found


def layout_shift(page: Page, milliseconds: int) -> float:
    """How much of the page moved by itself meanwhile, as browsers score it: a number that grows to the left is 0.00001,
    a line that pushes the others down 0.01 and more. What moves within half a second of a click was moved by that.
    """
    found: float = page.evaluate(_SHIFTS, milliseconds)
    return found
