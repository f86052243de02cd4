// Numbers, times and spans as people read them. Pure.

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const day = new Intl.DateTimeFormat("en-CA", { year: "numeric", month: "2-digit", day: "2-digit" });

const COUNTER_BITS = 18n; // of a timestamp: the milliseconds since 1970 are above them

export const NOTHING = "–";

export function count(value) {
  if (value === null || value === undefined) return NOTHING;
  return value < 1e7 ? whole.format(value) : `${whole.format(value / 1e6)} M`;
}

export function rate(value) {
  if (value === null) return NOTHING;
  return value > 0 && value < 9.95 ? value.toFixed(1) : count(Math.round(value));
}

export function percent(part, all) {
  if (!all) return NOTHING;
  const share = (100 * part) / all;
  return share > 0 && share < 0.1 ? "< 0.1 %" : `${share.toFixed(1)} %`;
}

// A short time, such as a latency or an outage.
export function span(milliseconds) {
  if (milliseconds === null || milliseconds === undefined) return NOTHING;
  if (milliseconds < 10) return `${Number.isInteger(milliseconds) ? milliseconds : milliseconds.toFixed(1)} ms`;
  if (milliseconds < 1000) return `${Math.round(milliseconds)} ms`;
  if (milliseconds < 60_000) return `${(milliseconds / 1000).toFixed(2)} s`;
  return age(milliseconds);
}

// A long one: two units are enough.
export function age(milliseconds) {
  const seconds = Math.floor(milliseconds / 1000);
  const two = (large, unit, small, smaller) => `${large} ${unit} ${String(small).padStart(2, "0")} ${smaller}`;
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return two(Math.floor(seconds / 60), "min", seconds % 60, "s");
  if (seconds < 86_400) return two(Math.floor(seconds / 3600), "h", Math.floor(seconds / 60) % 60, "min");
  return two(Math.floor(seconds / 86_400), "d", Math.floor(seconds / 3600) % 24, "h");
}

// For the last twelve hours, as far as they are of the same day, the time alone says it.
export function moment(milliseconds, now) {
  const time = clock.format(milliseconds);
  return now - milliseconds < 43_200_000 && day.format(now) === day.format(milliseconds)
    ? time
    : `${day.format(milliseconds)} ${time}`;
}

export function millisecondsOf(timestamp) {
  return Number(BigInt(timestamp) >> COUNTER_BITS);
}
