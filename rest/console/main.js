// The console: asks its own oracle once a second how the installation is, and shows it.

import * as api from "./api.js";
import { Chart } from "./chart.js";
import { missed, remember } from "./following.js";
import { age, rate, span } from "./format.js";
import { allowHandOver, forbidHandOver } from "./handover.js";
import { showLease, stopLease } from "./lease.js";
import { announce, element, tell } from "./page.js";
import { Series } from "./series.js";
import { showInstallation, showNumbers, showProblems } from "./view.js";

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

let seenAt = null; // when this oracle answered last, by the page's clock

async function poll() {
  try {
    const [installation, metrics] = await Promise.all([api.installation(), api.metrics()]);
    show(installation, metrics);
  } catch (error) {
    if (error instanceof api.Refused) refused(error);
    else unreachable();
  }
  setTimeout(poll, INTERVAL_MS);
}

function show(installation, metrics) {
  seenAt = performance.now();
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
}

// Without the right token nothing is shown but the question for one, in the words of the answer.
function refused(error) {
  if (!error.wantsToken) {
    showProblems([error.message]);
    return;
  }
  element("state").dataset.state = "waiting";
  tell("state-text", "Token needed");
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
  element("state").dataset.state = "waiting";
  tell("state-text", "No answer");
  tell("seen", seenAt === null ? "" : `as of ${age(performance.now() - seenAt)} ago`);
  element("main").dataset.stale = "";
  stopLease();
  forbidHandOver();
  missed();
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
poll();
