// The hand-over: asked for once, in a dialog of the browser's own, which keeps the focus and closes with Escape.

import { handOver } from "./api.js";
import { span } from "./format.js";
import { announce, element, tell } from "./page.js";

const dialog = element("dialog");
const button = element("hand-over");
const cancel = element("dialog-cancel");
const go = element("dialog-do");

let installation = null;
let awaited = null; // what was handed over, whose outage is still to be told

export function allowHandOver(told) {
  installation = told;
  const standby = told.members.some((one) => one.role === "standby");
  button.disabled = !(told.elected && told.primary && standby);
  button.title = button.disabled ? "It takes a primary, and a standby that answers" : "";
  const tenure = awaited && told.history.find((one) => one.epoch === awaited.to_epoch);
  if (!tenure) return;
  const text = `Nobody served for ${span(tenure.outage_ms)}, as ${tenure.holder} measured it. ${tookOf(awaited)}`;
  awaited = null;
  tell("dialog-result", text);
  announce(text);
}

export function forbidHandOver() {
  button.disabled = true;
}

const tookOf = (done) => `From the click to the next epoch: ${span(Math.round(done.took_ms))}.`;

function open() {
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
  dialog.showModal();
  cancel.focus();
}

async function confirm() {
  go.disabled = true;
  cancel.focus();
  tell("dialog-result", "Handing over…");
  try {
    const done = await handOver();
    awaited = done;
    tell("dialog-title", "Handed over");
    tell("dialog-text", `${done.from_holder} gave the lease to ${done.to_holder}, which serves epoch ${done.to_epoch}.`);
    tell("dialog-result", tookOf(done));
  } catch (error) {
    tell("dialog-title", "Not handed over");
    tell("dialog-result", "");
    tell("dialog-problem", error.message);
  }
  go.hidden = true;
  tell(cancel, "Close");
}

button.addEventListener("click", open);
go.addEventListener("click", confirm);
cancel.addEventListener("click", () => dialog.close());
dialog.addEventListener("close", () => button.focus());
