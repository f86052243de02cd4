// The hand-over: asked for once, in a dialog of the browser's own, which keeps the focus and closes with Escape.

import { handOver, Refused } from "./api.js";
import { span } from "./format.js";
import { announce, element, tell } from "./page.js";

const dialog = element("dialog");
const button = element("hand-over");
const cancel = element("dialog-cancel");
const go = element("dialog-do");

let installation = null;
let awaited = null; // what was handed over, whose outage is still to be told
let underWay = false;
let unread = false; // how it ended, or that it has not ended: shown before another is asked for

export function allowHandOver(told) {
  installation = told;
  const standby = told.members.some((one) => one.role === "standby");
  button.disabled = !unread && !(told.elected && told.primary && standby);
  button.title = button.disabled ? "It takes a primary, and a standby that answers" : "";
  const tenure = awaited && told.history.find((one) => one.epoch === awaited.to_epoch);
  if (!tenure) return;
  const text = `Nobody served for ${span(tenure.outage_ms)}, as ${tenure.holder} measured it. ${tookOf(awaited)}`;
  awaited = null;
  tell("dialog-result", text);
  announce(text);
}

export function forbidHandOver() {
  button.disabled = !unread;
}

const tookOf = (done) => `From the click to the next epoch: ${span(Math.round(done.took_ms))}.`;

function open() {
  if (!unread) propose();
  dialog.showModal();
  cancel.focus();
}

function propose() {
  awaited = null;
  const standbys = installation.members.filter((one) => one.role === "standby").map((one) => one.holder);
  tell("dialog-title", "Hand over?");
  tell(
    "dialog-text",
    `${installation.primary} finishes what is under way and gives the lease back; ${standbys.join(" or ")} takes over. ` +
      "Clients see a pause, and no error.",
  );
  tell("dialog-result", "");
  tell("dialog-problem", "");
  tell(cancel, "Cancel");
  go.hidden = false;
  go.disabled = false;
}

async function confirm() {
  go.disabled = true;
  cancel.focus();
  tell("dialog-result", "Handing over…");
  tell(cancel, "Close");
  underWay = true;
  try {
    const done = await handOver();
    awaited = done;
    tell("dialog-title", "Handed over");
    tell("dialog-text", `${done.from_holder} gave the lease to ${done.to_holder}, which serves epoch ${done.to_epoch}.`);
    tell("dialog-result", tookOf(done));
  } catch (error) {
    failed(error);
  }
  underWay = false;
  go.hidden = true;
  if (unread) announce(element("dialog-title").textContent);
}

function failed(error) {
  const refused = wasRefused(error);
  tell("dialog-title", refused ? "Not handed over" : "Not known whether it was handed over");
  if (!refused) tell("dialog-text", "It may have been done, or may yet be: look at the members and the epochs before you ask again.");
  tell("dialog-result", "");
  tell("dialog-problem", error.message);
}

// Only then nothing was done for sure. Who asks again after any other end may hand over twice.
function wasRefused(error) {
  if (!(error instanceof Refused)) return false;
  return error.problem.code === "cannot-hand-over" || error.status === 401 || error.status === 403;
}

button.addEventListener("click", open);
go.addEventListener("click", confirm);
cancel.addEventListener("click", () => dialog.close());
dialog.addEventListener("close", () => {
  unread = underWay;
  if (unread) button.disabled = false;
  button.focus();
});
