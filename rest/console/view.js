// What was asked of this oracle, put into the page.

import { age, count, millisecondsOf, moment, NOTHING, percent, rate, span } from "./format.js";
import { announce, drawn, element, keyed, make, row, tell } from "./page.js";

const TENURES_SHOWN = 5;
const TIMELINE_TENURES = 16;
const ROOM = [
  { name: "Conflict map", of: "pythia_conflict_map_entries", most: "pythia_conflict_map_entries_max" },
  { name: "Decisions kept", of: "pythia_remembered_decisions", most: "pythia_remembered_decisions_max" },
  { name: "In flight", of: "pythia_transactions_in_flight", most: "pythia_transactions_in_flight_max" },
  { name: "Requests waiting", of: 'pythia_queue_length{queue="requests"}' },
  { name: "Writes waiting", of: 'pythia_queue_length{queue="writes"}' },
  { name: "Look-ups waiting", of: 'pythia_queue_length{queue="lookups"}' },
  { name: "Watermark behind", of: "pythia_watermark_lag_seconds", format: (seconds) => span(1000 * seconds) },
  { name: "Cells forgotten", of: "pythia_conflict_map_evictions_total" },
];

const REASONS = [
  ["conflict", "Conflict"],
  ["too_old", "Too old"],
  ["aborted", "Aborted"],
  ["too_large", "Too large"],
  ["expired", "Expired"],
];
const CAUSES = { "first start": "First start", "lease ran out": "Lease ran out", "handed over": "Handed over" };

export const consoleOf = (rest) => `${location.protocol}//${rest}/console`;

let allTenures = false;
let tenuresTold = null; // the installation whose tenures are shown

export function showInstallation(told) {
  const primary = told.members.find((one) => one.holder === told.primary);
  showState(told, primary);
  showPrimary(told, primary);
  showMembers(told);
  showTenures(told);
  showOpen(told);
  showHorizon(told, primary);
  showProblems(told.problems);
}

export function showProblems(problems) {
  element("problems").hidden = problems.length === 0;
  keyed(element("problems"), problems, (text) => text, (text) => make("li", {}, text), () => {});
}

// What is so is not known just now: why, in a word or two.
export function showNotKnown(why) {
  element("state").dataset.state = "waiting";
  tell("state-text", why);
  document.title = `◌ Pythia ${element("root").textContent}`.trim();
}

function showState(told, primary) {
  const draining = primary?.role === "draining";
  const state = primary ? (draining ? "draining" : "serving") : "none";
  element("state").dataset.state = state;
  tell("state-text", { serving: "Serving", draining: "Handing over", none: "No primary" }[state]);
  tell("root", told.root);
  document.title = `${{ serving: "●", draining: "◐", none: "○" }[state]} Pythia ${told.root}`;
  const last = told.history.at(-1);
  if (!primary) announce("No oracle is primary.");
  else if (last && last.holder === told.primary && last.outage_ms !== null)
    announce(`${told.primary} is primary. Before it nobody served for ${outage(last)}.`);
  else announce(`${told.primary} is primary.`);
}

function showPrimary(told, primary) {
  tell("primary", told.primary || "nobody");
  const waiting = told.members.length ? "a standby takes over when the lease is free" : "no oracle is a member";
  const target = primary && !primary.own && primary.rest ? consoleOf(primary.rest) : "";
  link(element("primary-at"), target, primary ? (target ? `${primary.address}, its console` : primary.address) : waiting);
  tell("primary-epoch", primary ? `epoch ${told.epoch}` : "");
}

// A text that is a link where there is somewhere to go. The same link stays the same node.
function link(place, target, text, attributes = {}) {
  const known = place.querySelector("a");
  if ((known?.getAttribute("href") ?? "") !== target || (!target && place.textContent !== text))
    place.replaceChildren(target ? make("a", { href: target, ...attributes }, text) : text);
  else if (known) tell(known, text);
}

function showHorizon(told, primary) {
  const { horizon } = told;
  tell("horizon", horizon ? age(horizon.behind_ms) : NOTHING);
  const waiting = primary ? "not known yet in this epoch" : "not known without a primary";
  tell("horizon-more", horizon ? `behind now: ${moment(millisecondsOf(horizon.timestamp), told.now_ms)}` : waiting);
}

function showMembers(told) {
  const labels = ["Process", "Role", "Address", "Connections", "Console"];
  keyed(element("members"), told.members, (one) => `${one.holder} ${one.address}`, () => row(labels, [3]), showMember);
  const standbys = told.members.filter((one) => one.role === "standby");
  const silent = told.members.filter((one) => one.role === "silent").length;
  const parts = [`${standbys.length} ${standbys.length === 1 ? "standby" : "standbys"}`];
  if (silent) parts.push(`${silent} silent`);
  tell("members-more", told.elected ? parts.join(", ") : "alone, without ZooKeeper: no failover");
}

function showMember(line, one) {
  const [name, role, address, connections, page] = line.children;
  line.dataset.role = one.role;
  tell(name, one.own ? `${one.holder} (this page’s)` : one.holder);
  const warmth = one.role !== "standby" || one.warm === null ? "" : one.warm ? ", warm" : ", not warm yet";
  tell(role, one.role + warmth);
  const reason = one.problem ? why(one) : one.hindrance;
  if (address.dataset.told !== one.address + reason) {
    address.dataset.told = one.address + reason;
    address.replaceChildren(one.address, ...(reason ? [make("small", {}, reason)] : []));
  }
  tell(connections, count(one.connections));
  const target = one.rest && !one.own ? consoleOf(one.rest) : "";
  link(page, target, target ? "open" : one.own ? "here" : NOTHING, { "aria-label": `The console of ${one.holder}` });
}

const why = (one) => one.problem.replace(`${one.address}: `, "").replace(/^\[Errno \d+\] /, "");

const outage = (tenure) => (tenure.at_least ? "≥ " : "") + span(tenure.outage_ms);

function showTenures(told) {
  tenuresTold = told;
  const { history, now_ms: now } = told;
  const served = history.map((one, index) => {
    const next = history[index + 1];
    const until = next ? next.since_ms - (next.outage_ms ?? 0) : told.primary === one.holder ? now : null;
    return { ...one, now, servedMs: until === null ? null : Math.max(0, until - one.since_ms) };
  });
  const latest = served.toReversed();
  const labels = ["Since", "Primary", "Why", "Outage", "Served"];
  const shown = allTenures ? latest : latest.slice(0, TENURES_SHOWN);
  keyed(element("tenures"), shown, (one) => one.epoch, () => row(labels, [3, 4]), showTenure);
  element("tenures-none").hidden = history.length > 0;
  tell("tenures-none", told.elected ? "No tenure is recorded yet." : "An oracle that is alone keeps no history.");
  const button = element("tenures-all");
  button.hidden = history.length <= TENURES_SHOWN;
  tell(button, allTenures ? "Show the last ones" : `Show all ${history.length}`);
  button.setAttribute("aria-expanded", String(allTenures));
  const failovers = history.filter((one) => one.cause === "lease ran out").length;
  tell("tenures-more", history.length ? `${history.length} recorded, ${failovers} by a lease that ran out` : "");
  drawTimeline(served.slice(-TIMELINE_TENURES), now);
}

element("tenures-all").addEventListener("click", () => {
  allTenures = !allTenures;
  showTenures(tenuresTold);
});

function showTenure(line, one) {
  const [since, holder, why, gap, served] = line.children;
  tell(since, moment(one.since_ms, one.now));
  tell(holder, one.holder);
  holder.title = `${one.address}, epoch ${one.epoch}`;
  tell(why, CAUSES[one.cause]);
  why.dataset.cause = one.cause;
  tell(gap, one.outage_ms === null ? NOTHING : outage(one));
  gap.title = one.at_least ? "At least: its beginning was not seen" : "";
  tell(served, one.servedMs === null ? NOTHING : age(one.servedMs));
}

// One bar over the last tenures, by time; a tick where nobody served. The table below says the same.
function drawTimeline(tenures, now) {
  const place = element("timeline");
  place.hidden = tenures.length === 0;
  if (!tenures.length) return;
  const from = tenures[0].since_ms;
  const share = (moment) => (1000 * Math.max(0, moment - from)) / Math.max(1, now - from);
  const holders = [...new Set(tenures.map((one) => one.holder))].sort();
  const svg = place.querySelector("svg") ?? drawn("svg", { viewBox: "0 0 1000 10", preserveAspectRatio: "none", "aria-hidden": "true" });
  if (!svg.parentNode) place.append(svg, make("div", { class: "axis quiet" }, make("span"), make("span", {}, "now")));
  svg.replaceChildren();
  for (const [index, one] of tenures.entries()) {
    const until = one.servedMs === null ? now : one.since_ms + one.servedMs;
    const width = Math.max(1.5, share(until) - share(one.since_ms));
    svg.append(drawn("rect", { x: share(one.since_ms), y: 2, width, height: 8, class: `holder-${holders.indexOf(one.holder) % 4}` }));
    const gap = Math.max(3, share(one.since_ms) - share(one.since_ms - (one.outage_ms ?? 0)));
    const how = one.cause === "handed over" ? "passed" : "failed";
    if (index > 0) svg.append(drawn("rect", { x: Math.max(0, share(one.since_ms) - gap), y: 0, width: gap, height: 10, class: how }));
  }
  if (tenures.at(-1).servedMs === null) svg.append(drawn("rect", { x: 994, y: 0, width: 6, height: 10, class: "failed" }));
  tell(place.querySelector(".axis span"), moment(from, now));
}

function showOpen(told) {
  const labels = ["Start", "Began", "Age", "Silent for"];
  const life = told.transaction_life_ms;
  keyed(element("open"), told.transactions, (one) => one.start_timestamp, () => row(labels, [2, 3]), (line, one) => {
    const [start, began, old, silent] = line.children;
    tell(start, one.start_timestamp);
    tell(began, moment(millisecondsOf(one.start_timestamp), told.now_ms));
    tell(old, age(one.age_ms));
    tell(silent, age(one.silent_ms));
  });
  const none = element("open-none");
  none.hidden = told.transactions.length > 0;
  tell(none, told.primary ? "None has sent a heartbeat. Short transactions send none and are not listed." : "Not known without a primary.");
  tell("open-more", life ? `given up after ${age(life)} of silence` : "");
  const oldest = told.transactions[0];
  tell("oldest", oldest ? age(oldest.age_ms) : NOTHING);
  const why = told.primary ? "none with heartbeats" : "not known without a primary";
  tell("oldest-more", oldest ? `began ${moment(millisecondsOf(oldest.start_timestamp), told.now_ms)}` : why);
}

export function showNumbers(metrics, latest) {
  tell("commit-rate", rate(latest?.commits ?? null));
  const missing = metrics.process ? "being measured" : "not known without a primary";
  const refused = latest?.refused ? `${rate(latest.refused)} refused` : "none refused";
  tell("commit-more", latest?.commits == null ? missing : refused);
  tell("commit-p99", span(latest?.p99 ?? null));
  tell("commit-p50", latest?.p50 == null ? (latest?.commits == null ? missing : "no commits in 5 s") : `p50 ${span(latest.p50)}`);
  keyed(element("reasons"), REASONS, ([reason]) => reason, ([, name]) => make("div", {}, make("dt", {}, name), make("dd", { class: "number" })), (line, [reason]) =>
    tell(line.lastChild, rate(latest?.reasons[reason] ?? null)),
  );
  keyed(element("room"), ROOM, (one) => one.name, buildRoom, (line, one) => showRoom(line, one, metrics.samples));
}

function buildRoom(one) {
  const line = make("div", {}, make("dt", {}, one.name), make("dd", { class: "number" }));
  if (one.most) line.append(make("div", { class: "meter", "aria-hidden": "true" }, make("span")));
  return line;
}

function showRoom(line, one, samples) {
  const value = samples[one.of];
  const most = samples[one.most];
  const said = value === undefined ? NOTHING : (one.format ?? count)(value);
  tell(line.children[1], most === undefined || value === undefined ? said : `${said} · ${percent(value, most)}`);
  if (one.most) line.lastChild.firstChild.style.transform = `scaleX(${most ? Math.min(1, (value ?? 0) / most) : 0})`;
}
