// From counters to what a chart shows: rates and quantiles out of the differences of two samples. Pure.

export const SPAN_MS = 180_000;
const LATENCY_MS = 5_000;
const BUCKET = /^pythia_commit_seconds_bucket\{le="([^"]+)"\}$/;
const REASON = /^pythia_commit_answers_total\{reason="([^"]+)"\}$/;

const RATES = { begins: "pythia_begins_total", commits: "pythia_commits_total" };

export class Series {
  constructor() {
    this.points = [];
    this.samples = [];
  }

  // One sample of the primary, or of nobody (process: ""). Another process counts by itself: no difference then. Nor
  // where the oracle's clock, which is never stepped, began anew with its machine.
  take(metrics, wallMs) {
    const last = this.samples.at(-1);
    if (last && last.process === metrics.process && last.monotonic_ms === metrics.monotonic_ms) return;
    if (last && (last.process !== metrics.process || last.monotonic_ms > metrics.monotonic_ms)) this.samples = [];
    if (metrics.process) this.samples.push(metrics);
    while (this.samples.length > 2 && metrics.monotonic_ms - this.samples[1].monotonic_ms >= LATENCY_MS) this.samples.shift();
    // What was seen later than now was so by a clock that has been set back since.
    this.points = this.points.filter((one) => one.wallMs < wallMs && one.wallMs >= wallMs - SPAN_MS);
    this.points.push({ wallMs, serving: metrics.process !== "", ...this.#rates(), ...this.#latencies() });
  }

  get latest() {
    return this.points.at(-1) ?? null;
  }

  #rates() {
    const [before, now] = this.samples.slice(-2);
    if (!now) return { begins: null, commits: null, refused: null, reasons: {} };
    const seconds = (now.monotonic_ms - before.monotonic_ms) / 1000;
    const per = (name) => Math.max(0, (now.samples[name] ?? 0) - (before.samples[name] ?? 0)) / seconds;
    const reasons = {};
    for (const name of Object.keys(now.samples)) {
      const found = REASON.exec(name);
      if (found && found[1] !== "committed") reasons[found[1]] = per(name);
    }
    const refused = Object.values(reasons).reduce((sum, one) => sum + one, 0);
    return { begins: per(RATES.begins), commits: per(RATES.commits), refused, reasons };
  }

  #latencies() {
    if (this.samples.length < 2) return { p50: null, p99: null };
    const counts = difference(this.samples[0].samples, this.samples.at(-1).samples);
    return { p50: quantile(counts, 0.5), p99: quantile(counts, 0.99) };
  }
}

// [bound in seconds, how many were at or below it], in order.
function difference(before, now) {
  const counts = [];
  for (const [name, value] of Object.entries(now)) {
    const found = BUCKET.exec(name);
    if (found) counts.push([found[1] === "+Inf" ? Infinity : Number(found[1]), value - (before[name] ?? 0)]);
  }
  return counts.sort((one, other) => one[0] - other[0]);
}

// In milliseconds, linear within its bin; null where nothing was observed. Beyond the last bound: that bound.
export function quantile(counts, share) {
  const all = counts.length ? counts.at(-1)[1] : 0;
  if (all <= 0) return null;
  let below = 0;
  let from = 0;
  for (const [bound, upTo] of counts) {
    if (upTo >= share * all) {
      if (bound === Infinity) return from * 1000;
      return (from + ((share * all - below) / (upTo - below || 1)) * (bound - from)) * 1000;
    }
    below = upTo;
    from = bound;
  }
  return from * 1000;
}
