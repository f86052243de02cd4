// When this oracle's process is gone: the page says so, offers the other members' pages, and goes to one by itself.
//
// It asks no other origin whether it answers: the page's policy lets it ask its own only. So it goes, to the member that
// answered last and was not tried before; what was tried travels in the address, after the #.
//
// Silence is measured, not counted in tries: a host that is cut off refuses nothing, and holds each try for seconds.

import { consoleOf } from "./view.js";
import { announce, element, keyed, make, tell } from "./page.js";

const SAID_AFTER_MS = 3_000;
const LEFT_AFTER_MS = 9_000;
const TICK_MS = 250;
const TICK_COUNTS_MS_MAX = 1_000; // while the page, or the computer, slept nobody was silent

const tried = new Set(triedBefore());
let pages = []; // of the other members, who answered last first
let silentMs = null; // since the first question that was not answered; null: all were
let tickedAt = performance.now();
let going = false;
let staying = false;
let whenSilent = () => {};

// What to do, several times a second, while this oracle is silent.
export function onSilence(act) {
  whenSilent = act;
}

// A question is on its way.
export function asked() {
  silentMs ??= 0;
}

// This oracle is there, whatever it answered.
export function answered() {
  silentMs = null;
  remain();
  element("gone").hidden = true;
}

// Remember where the others are; also of those who served once, which may be there still.
export function remember(told) {
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

function triedBefore() {
  if (!location.hash.startsWith("#tried=")) return [];
  try {
    return location.hash.slice(7).split(",").map(decodeURIComponent);
  } catch {
    return []; // an address that was cut, or typed
  }
}

function tick() {
  const now = performance.now();
  const passedMs = Math.min(now - tickedAt, TICK_COUNTS_MS_MAX);
  tickedAt = now;
  if (silentMs === null) return;
  silentMs += passedMs;
  if (silentMs < SAID_AFTER_MS) return;
  whenSilent();
  sayGone();
}

function sayGone() {
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
  const left = Math.max(0, Math.ceil((LEFT_AFTER_MS - silentMs) / 1000));
  tell("gone-text", `Going to the page of ${next.holder} in ${left} s. What is shown below is as it was last.`);
  if (left > 0 || going) return;
  going = true; // to ask for it again would begin it anew
  const all = [...tried, location.host].map(encodeURIComponent).join(",");
  location.assign(`${consoleOf(next.rest)}#tried=${all}`);
}

function remain() {
  if (going) window.stop();
  going = false;
}

function build(one) {
  return make("li", {}, make("a", { href: consoleOf(one.rest) }, `The console of ${one.holder}`), ` ${one.rest}${one.answered ? "" : ", did not answer last"}`);
}

element("stay").addEventListener("click", () => {
  staying = true;
  remain();
  element("stay").hidden = true;
  element("gone-pages").querySelector("a")?.focus();
});

setInterval(tick, TICK_MS);
