// The lease's clock: what was told last, counted down from then on, since nobody can tell sooner that it was not renewed.

import { element, tell } from "./page.js";
import { NOTHING } from "./format.js";

const STEP_MS = 100;
const still = matchMedia("(prefers-reduced-motion: reduce)");

let told = null;
let since = 0;

export function showLease(installation) {
  told = installation;
  since = performance.now();
  draw(0);
}

// Nothing is told any more: a clock that ran on would show what nobody knows.
export function stopLease() {
  if (!told) return;
  told = null;
  tell("lease-left", NOTHING);
  tell("lease-more", "not known");
  drawMeter(null, 0);
}

function draw(passedMs) {
  if (!told) return;
  const { lease, primary, elected } = told;
  const left = lease ? Math.max(0, lease.remaining_ms - passedMs) : 0;
  tell("lease-left", lease ? `${(left / 1000).toFixed(1)} s` : NOTHING);
  drawMeter(lease, left);
  element("lease-meter").dataset.state = primary ? "held" : "free";
  tell("lease-more", said(lease, primary, elected));
}

// The same for those who do not see it.
function drawMeter(lease, left) {
  const meter = element("lease-meter");
  meter.firstElementChild.style.transform = `scaleX(${lease ? Math.min(1, left / lease.lease_ms) : 0})`;
  meter.setAttribute("aria-valuemax", String(lease?.lease_ms ?? 1));
  meter.setAttribute("aria-valuenow", String(Math.round(left)));
  meter.setAttribute("aria-valuetext", lease ? `${(left / 1000).toFixed(1)} of ${lease.lease_ms / 1000} seconds left` : "not known");
}

function said(lease, primary, elected) {
  if (!elected) return "alone: held without end";
  if (!lease) return "not known";
  const whole = `of ${lease.lease_ms / 1000} s`;
  return primary ? `${whole} unless renewed` : `${whole}, ${lease.told_by} waits`;
}

setInterval(() => {
  if (!still.matches) draw(performance.now() - since);
}, STEP_MS);
