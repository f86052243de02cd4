// The console: asks its own oracle once a second how the installation is, and shows it.

import * as api from "./api.js";
import { Chart } from "./chart.js";
import { answered, asked, onSilence, remember } from "./following.js";
import { age, rate, span } from "./format.js";
import { allowHandOver, forbidHandOver } from "./handover.js";
import { showLease, stopLease } from "./lease.js";
import { announce, element, tell } from "./page.js";
import { Series } from "./series.js";
import { showInstallation, showNotKnown, showNumbers, showProblems } from "./view.js";

const INTERVAL_MS = 1_000;

const series = new Series();
const throughput = new Chart(
  element("throughput"),
  "Transactions a second",
  [
    { key: "commits", name: "Commits", area: true },
    { key: "begins", name: "Begins" },
    { key: "refused", name: "Refused" },
  ],
  rate,
  10,
);
const latency = new Chart(
  element("latency"),
  "Commit latency",
  [
    { key: "p99", name: "p99" },
    { key: "p50", name: "p50", area: true },
  ],
  span,
  10,
);

let shownAt = null; // when all that this oracle told was shown last, by the page's clock

async function poll() {
  asked();
  try {
    const [installation, metrics] = await Promise.all([api.installation(), api.metrics()]);
    answered();
    show(installation, metrics);
  } catch (error) {
    if (error instanceof api.Refused) refused(error);
    else if (error instanceof api.Unreachable) unreachable();
    else faulty(error);
  }
  setTimeout(poll, INTERVAL_MS);
}

function show(installation, metrics) {
  element("login").hidden = true;
  element("main").hidden = false;
  delete element("main").dataset.stale;
  element("forget").hidden = !api.token.get();
  const own = installation.members.find((one) => one.own);
  tell("seen", `seen from ${own ? `${own.holder}, ${own.role}` : location.host}`);
  remember(installation);
  showInstallation(installation);
  showLease(installation);
  series.take(metrics, installation.now_ms);
  showNumbers(metrics, series.latest);
  throughput.draw(series.points);
  latency.draw(series.points);
  allowHandOver(installation);
  shownAt = performance.now();
}

// Without the right token nothing is shown but the question for one, in the words of the answer.
function refused(error) {
  answered();
  if (!error.wantsToken) {
    stale("Refused");
    showProblems([error.message]);
    return;
  }
  stale("Token needed");
  showProblems([]);
  tell("seen", "");
  element("main").hidden = true;
  element("forget").hidden = true;
  tell("login-problem", error.message);
  if (element("login").hidden) {
    element("login").hidden = false;
    element("token").focus();
  }
}

function unreachable() {
  stale("No answer");
}

// A fault of this page, not of the oracle: that answered.
function faulty(error) {
  stale("Not shown");
  showProblems([`This page could not show what it was told: ${error.message}`]);
  console.error(error);
}

// What is shown is not of now: it is greyed, counts nothing down, and offers no hand-over.
function stale(why) {
  showNotKnown(why);
  tell("seen", shownAt === null ? "" : `as of ${age(performance.now() - shownAt)} ago`);
  element("main").dataset.stale = "";
  stopLease();
  forbidHandOver();
}

element("login-form").addEventListener("submit", (event) => {
  event.preventDefault();
  api.token.set(element("token").value.trim());
  element("token").value = "";
  announce("The token is being tried.");
});

element("forget").addEventListener("click", () => {
  api.token.forget();
  location.reload();
});

throughput.draw([]);
latency.draw([]);
onSilence(unreachable);
document.documentElement.dataset.begun = ""; // all parts came: see index.html
poll();
