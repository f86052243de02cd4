// A line chart over the last minutes: what was seen, gaps where nothing was, bands where nobody served.

import { NOTHING } from "./format.js";
import { drawn, make, tell } from "./page.js";
import { SPAN_MS } from "./series.js";

const HEIGHT = 100;
const TABLE_ROWS = 12;
const TABLE_STEP_MS = 5_000;
const APART_MS = 5_000; // farther apart nobody looked: the slowest answers take 3 s, and the next question waits for 1 s

// lines: [{ key, name, area }]; the number of each in words: format; least: the smallest top of the scale.
export class Chart {
  constructor(place, title, lines, format, least) {
    this.lines = lines;
    this.format = format;
    this.least = least;
    this.title = title;
    this.now = new Map();
    this.#build(place);
  }

  draw(points) {
    const top = nice(Math.max(this.least, ...points.flatMap((one) => this.lines.map((line) => one[line.key] ?? 0))));
    const now = points.at(-1)?.wallMs ?? 0;
    const x = (wallMs) => (wallMs - now + SPAN_MS) / 1000;
    const y = (value) => HEIGHT - (value / top) * HEIGHT;
    for (const line of this.lines) {
      const runs = continuous(points, line.key);
      const path = runs.map((run) => `M${run.map(([at, value]) => `${x(at)},${y(value).toFixed(2)}`).join("L")}`);
      line.path.setAttribute("d", path.map((one, index) => (runs[index].length > 1 ? one : `${one}h-0.5`)).join(""));
      if (line.fill) {
        const closed = runs.map((run, index) => `${path[index]}L${x(run.at(-1)[0])},${HEIGHT}L${x(run[0][0])},${HEIGHT}Z`);
        line.fill.setAttribute("d", closed.join(""));
      }
      tell(this.now.get(line.key), this.format(points.at(-1)?.[line.key] ?? null));
    }
    this.outages.setAttribute("d", bands(points).map(([from, to]) => `M${x(from)},0H${Math.max(x(to), x(from) + 0.5)}V${HEIGHT}H${x(from)}Z`).join(""));
    this.ticks.forEach((tick, index) => tell(tick, this.format((top * (2 - index)) / 2)));
    this.svg.setAttribute("aria-label", this.#inWords(points));
    if (this.details.open) this.#fillTable(points);
    this.points = points;
  }

  #build(place) {
    this.svg = drawn("svg", { viewBox: `0 0 ${SPAN_MS / 1000} ${HEIGHT}`, preserveAspectRatio: "none", role: "img" });
    for (const at of [0, HEIGHT / 2, HEIGHT]) this.svg.append(drawn("path", { d: `M0,${at}H${SPAN_MS / 1000}`, class: "grid" }));
    this.outages = drawn("path", { class: "outage" });
    this.svg.append(this.outages);
    const legend = make("ul", { class: "legend" });
    for (const line of this.lines) {
      if (line.area) this.svg.append((line.fill = drawn("path", { class: `area ${line.key}` })));
      this.svg.append((line.path = drawn("path", { class: `line ${line.key}` })));
      const value = make("b", { class: "number" });
      this.now.set(line.key, value);
      legend.append(make("li", {}, make("span", { class: `key ${line.key}`, "aria-hidden": "true" }), line.name, " ", value));
    }
    legend.append(make("li", {}, make("span", { class: "key band", "aria-hidden": "true" }), "No primary"));
    this.ticks = [0, 1, 2].map(() => make("span"));
    this.body = make("tbody");
    const head = make("tr", {}, ...["Ago", ...this.lines.map((line) => line.name)].map((name) => make("th", { scope: "col" }, name)));
    const table = make("table", {}, make("caption", { class: "unseen" }, this.title), make("thead", {}, head), this.body);
    this.details = make("details", {}, make("summary", {}, "As a table", make("span", { class: "unseen" }, `: ${this.title}`)), table);
    this.details.addEventListener("toggle", () => this.#fillTable(this.points ?? []));
    const plot = make("div", { class: "plot" }, make("div", { class: "ticks", "aria-hidden": "true" }, ...this.ticks), this.svg);
    const axis = make("div", { class: "axis quiet", "aria-hidden": "true" }, make("span", {}, "3 min ago"), make("span", {}, "now"));
    place.append(legend, plot, axis, this.details);
  }

  #inWords(points) {
    const said = this.lines.map((line) => {
      const values = points.map((one) => one[line.key]).filter((value) => value !== null && value !== undefined);
      if (!values.length) return `${line.name}: nothing yet`;
      return `${line.name}: now ${this.format(points.at(-1)[line.key])}, at most ${this.format(Math.max(...values))}`;
    });
    return `${this.title}, the last three minutes. ${said.join(". ")}.`;
  }

  #fillTable(points) {
    const rows = [];
    for (let row = 0; row < TABLE_ROWS; row += 1) {
      const until = points.length ? points.at(-1).wallMs - row * TABLE_STEP_MS : -Infinity;
      const point = points.findLast((one) => one.wallMs <= until);
      const seen = point && until - point.wallMs < TABLE_STEP_MS; // all rows from the beginning: what is below stays where it is
      const cells = this.lines.map((line) => make("td", { class: "number" }, seen ? this.#cell(point, line) : NOTHING));
      rows.push(make("tr", {}, make("th", { scope: "row" }, `${(row * TABLE_STEP_MS) / 1000} s`), ...cells));
    }
    this.body.replaceChildren(...rows);
  }

  #cell(point, line) {
    return point.serving ? this.format(point[line.key]) : "no primary";
  }
}

const together = (one, next) => Boolean(one && next) && next.wallMs - one.wallMs <= APART_MS;

// The stretches of a line without gaps, as [time, value].
function continuous(points, key) {
  const runs = [];
  let before = null;
  for (const point of points) {
    const value = point[key] ?? null;
    if (value !== null && together(before, point)) runs.at(-1).push([point.wallMs, value]);
    else if (value !== null) runs.push([[point.wallMs, value]]);
    before = value === null ? null : point;
  }
  return runs;
}

// From the last point at which somebody served to the first at which somebody did again, as far as somebody looked.
function bands(points) {
  const found = [];
  points.forEach((point, at) => {
    if (point.serving) return;
    const from = together(points[at - 1], point) ? points[at - 1].wallMs : point.wallMs;
    const to = together(point, points[at + 1]) ? points[at + 1].wallMs : point.wallMs;
    if (found.length && found.at(-1)[1] >= from) found.at(-1)[1] = to;
    else found.push([from, to]);
  });
  return found;
}

// 1, 2 or 5 times a power of ten, so that the half of it is a number to read, too.
function nice(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((factor) => factor * power).find((one) => one >= value);
}
