// When this oracle's process is gone: the page says so, offers the other members' pages, and goes to one by itself.
//
// It asks no other origin whether it answers: the page's policy lets it ask its own only. So it goes, to the member that
// answered last and was not tried before; what was tried travels in the address, after the #.

import { consoleOf } from "./view.js";
import { announce, element, keyed, make, tell } from "./page.js";

const FAILURES_BEFORE = 3;
const WAIT_S = 6;

const tried = new Set(location.hash.startsWith("#tried=") ? location.hash.slice(7).split(",").map(decodeURIComponent) : []);
let pages = []; // of the other members, who answered last first
let failures = 0;
let left = WAIT_S;
let staying = false;

// Remember where the others are; also of those who served once, which may be there still.
export function remember(told) {
  failures = 0;
  left = WAIT_S;
  element("gone").hidden = true;
  const answering = told.members.filter((one) => !one.own && one.rest && one.role !== "silent");
  answering.sort((one, other) => Number(other.role === "primary") - Number(one.role === "primary"));
  const own = new Set([location.host, ...told.members.filter((one) => one.own).map((one) => one.rest)]);
  const before = told.history.toReversed().filter((one) => one.rest && !own.has(one.rest));
  const known = new Map(pages.map((one) => [one.rest, one]));
  for (const one of before) known.set(one.rest, { rest: one.rest, holder: one.holder, answered: false });
  for (const [rest, one] of known) known.set(rest, { ...one, answered: false });
  const first = answering.map((one) => ({ rest: one.rest, holder: one.holder, answered: true }));
  for (const one of first) known.delete(one.rest);
  pages = [...first, ...known.values()].filter((one) => !own.has(one.rest)).slice(0, 8);
  tried.clear();
}

// Nobody answered here. Called once for each try, a second apart.
export function missed() {
  failures += 1;
  if (failures < FAILURES_BEFORE) return;
  element("gone").hidden = false;
  announce("This oracle’s page does not answer.");
  keyed(element("gone-pages"), pages, (one) => `${one.rest} ${one.answered}`, build, () => {});
  const next = pages.find((one) => one.answered && !tried.has(one.rest)) ?? pages.find((one) => !tried.has(one.rest));
  element("stay").hidden = staying || !next;
  if (!navigator.onLine) tell("gone-text", "This device is offline. What is shown below is as it was last.");
  else if (!next) tell("gone-text", "No other member’s page is known. It goes on trying; what is shown below is as it was last.");
  else if (staying) tell("gone-text", "It goes on trying; what is shown below is as it was last.");
  else follow(next);
}

function follow(next) {
  tell("gone-text", `Going to the page of ${next.holder} in ${left} s. What is shown below is as it was last.`);
  left -= 1;
  if (left >= 0) return;
  const all = [...tried, location.host].map(encodeURIComponent).join(",");
  location.assign(`${consoleOf(next.rest)}#tried=${all}`);
}

function build(one) {
  return make("li", {}, make("a", { href: consoleOf(one.rest) }, `The console of ${one.holder}`), ` ${one.rest}${one.answered ? "" : ", did not answer last"}`);
}

element("stay").addEventListener("click", () => {
  staying = true;
  element("stay").hidden = true;
  element("gone-pages").querySelector("a")?.focus();
});
