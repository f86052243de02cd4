// A line chart over the last minutes: what was seen, gaps where nothing was, bands where nobody served.

import { drawn, make, tell } from "./page.js";
import { KEPT } from "./series.js";

const HEIGHT = 100;
const TABLE_ROWS = 12;
const TABLE_STEP = 5;

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
    const x = (index) => index + KEPT - points.length;
    const y = (value) => HEIGHT - (value / top) * HEIGHT;
    for (const line of this.lines) {
      const runs = continuous(points, line.key);
      const path = runs.map((run) => run.map(([at, value]) => `${x(at)},${y(value).toFixed(2)}`).join("L")).map((one) => `M${one}`);
      line.path.setAttribute("d", path.join(""));
      if (line.fill) {
        const closed = runs.map((run, index) => `${path[index]}L${x(run.at(-1)[0])},${HEIGHT}L${x(run[0][0])},${HEIGHT}Z`);
        line.fill.setAttribute("d", closed.join(""));
      }
      tell(this.now.get(line.key), this.format(points.at(-1)?.[line.key] ?? null));
    }
    this.outages.setAttribute("d", bands(points).map(([from, to]) => `M${x(from)},0H${x(to)}V${HEIGHT}H${x(from)}Z`).join(""));
    this.ticks.forEach((tick, index) => tell(tick, this.format((top * (2 - index)) / 2)));
    this.svg.setAttribute("aria-label", this.#inWords(points));
    if (this.details.open) this.#fillTable(points);
    this.points = points;
  }

  #build(place) {
    this.svg = drawn("svg", { viewBox: `0 0 ${KEPT - 1} ${HEIGHT}`, preserveAspectRatio: "none", role: "img" });
    for (const at of [0, HEIGHT / 2, HEIGHT]) this.svg.append(drawn("path", { d: `M0,${at}H${KEPT}`, class: "grid" }));
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
    for (let ago = 0; ago < TABLE_ROWS * TABLE_STEP && ago < points.length; ago += TABLE_STEP) {
      const point = points.at(-1 - ago);
      const cells = this.lines.map((line) => make("td", { class: "number" }, point.serving ? this.format(point[line.key]) : "no primary"));
      rows.push(make("tr", {}, make("th", { scope: "row" }, `${ago} s`), ...cells));
    }
    this.body.replaceChildren(...rows);
  }
}

// The stretches of a line without gaps, as [place, value].
function continuous(points, key) {
  const runs = [];
  points.forEach((point, at) => {
    const value = point[key];
    if (value === null || value === undefined) return;
    const run = runs.at(-1);
    if (run && run.at(-1)[0] === at - 1) run.push([at, value]);
    else runs.push([[at, value]]);
  });
  return runs;
}

// From the last point at which somebody served to the first at which somebody did again.
function bands(points) {
  const found = [];
  points.forEach((point, at) => {
    if (point.serving) return;
    const band = found.at(-1);
    if (band && band[1] === at) band[1] = at + 1;
    else found.push([Math.max(0, at - 1), at + 1]);
  });
  return found;
}

// 1, 2 or 5 times a power of ten, so that the half of it is a number to read, too.
function nice(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((factor) => factor * power).find((one) => one >= value);
}
