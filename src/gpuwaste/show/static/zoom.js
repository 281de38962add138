"use strict";
// The charts of a view over time with zoom and filter: a button on each drawing replaces it by uPlot, with the data of
// the page's JSON. A box filters the rows of the table. The page is whole without it.
(function () {
  const DAY_S = 86400;
  const HEIGHT = 320;
  const FAILED = "The hub does not answer. Try again in a minute.";
  const place = document.querySelector("[data-json]");
  let loaded = null;

  const made = (name, properties = {}, ...children) => {
    const element = Object.assign(document.createElement(name), properties);
    element.append(...children);
    return element;
  };
  const day = (at) => new Date(at * 1000).toISOString().slice(0, 10);
  const rounded = (value) => Number(value.toFixed(Math.abs(value) < 10 ? 2 : 1)).toLocaleString("en");

  function duration(seconds) {
    const units = [[DAY_S, "d"], [3600, "h"], [60, "min"]];
    const [size, name] = units.find(([one]) => Math.abs(seconds) >= one) || [1, "s"];
    return `${rounded(seconds / size)} ${name}`;
  }

  function figure(value, axis) {
    if (value === null || value === undefined) return "unknown";
    return axis.unit === "s" ? duration(value) : `${rounded(value)} ${axis.unit || axis.title}`;
  }

  function data() {
    if (!loaded) {
      loaded = fetch(place.dataset.json).then((answer) => {
        if (!answer.ok) throw new Error(String(answer.status));
        return answer.json();
      });
      loaded.catch(() => (loaded = null));
    }
    return loaded;
  }

  function colourOf(role) {
    const mark = made("span", { className: `role-${role}` });
    const probe = made("span", { className: "chart", hidden: true }, mark);
    place.append(probe);
    const colour = getComputedStyle(mark).getPropertyValue("--role").trim();
    probe.remove();
    return colour;
  }

  // The values as uPlot draws them: stacked series as sums, the highest first, so that each is seen below the next.
  function drawnValues(chart, shown) {
    const log = chart.y.scale === "log";
    const sums = chart.at.map(() => 0);
    const columns = shown.map((series) =>
      series.y.map((value, index) => {
        if (value === null || (log && value <= 0)) return null;
        return chart.type === "bars" && chart.stacked ? (sums[index] += value) : value;
      }),
    );
    return columns;
  }

  function scaleText(chart, values) {
    return values.map((value) => (value === null ? "" : chart.y.unit === "s" ? duration(value) : value.toLocaleString("en")));
  }

  class ZoomedChart {
    constructor(box, chart) {
      this.box = box;
      this.chart = chart;
      this.time = chart.x.scale === "time";
      const ends = chart.at.length > 1 ? chart.at[chart.at.length - 1] - chart.at[chart.at.length - 2] : DAY_S;
      this.span = [chart.at[0], chart.at[chart.at.length - 1] + (chart.type === "bars" ? ends : 0)];
      this.values = made("p", { className: "small muted" });
      this.values.setAttribute("role", "status");
      this.canvas = made("div");
      this.canvas.setAttribute("role", "img");
      this.canvas.setAttribute("aria-label", `${chart.title}; the table below has the figures`);
      this.checks = chart.series.map((series) => made("input", { type: "checkbox", checked: true, onchange: () => this.draw() }));
      this.fields = this.time ? this.dates() : [];
      const whole = made("button", { type: "button", textContent: "All", onclick: () => this.show(...this.span) });
      this.swatches = chart.series.map(() => made("span", { className: "zoom-swatch" }));
      const labels = chart.series.map((series, index) => made("label", {}, this.checks[index], this.swatches[index], series.name));
      const controls = made("div", { className: "zoom-controls" }, ...(labels.length > 1 ? labels : []), ...this.fields, whole);
      const named = ["", "s"].includes(chart.y.unit) || chart.title.toLowerCase().includes(chart.y.unit.toLowerCase());
      const unit = named ? "" : `, ${chart.y.unit}`;
      box.append(
        made("p", { className: "zoom-title", textContent: `${chart.title}${unit}` }),
        made("p", { className: "small muted", textContent: "Drag over the chart to zoom in." }),
        controls, this.canvas, this.values,
      );
      this.draw();
      new ResizeObserver(() => this.plot && box.clientWidth && this.plot.setSize({ width: box.clientWidth, height: HEIGHT })).observe(box);
      matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
    }

    dates() {
      const [first, last] = [day(this.span[0]), day(this.span[1] - 1)];
      const field = (name, value) =>
        made("input", { type: "date", min: first, max: last, value, name, onchange: () => this.fromFields() });
      this.from = field("from", first);
      this.to = field("to", last);
      return [made("label", {}, "From ", this.from), made("label", {}, "to ", this.to)];
    }

    fromFields() {
      const [from, to] = [Date.parse(this.from.value) / 1000, Date.parse(this.to.value) / 1000 + DAY_S];
      if (from < to) this.plot.setScale("x", { min: from, max: to });
    }

    show(min, max) {
      this.plot.setScale("x", { min, max });
    }

    shown() {
      return this.chart.series.filter((_, index) => this.checks[index].checked);
    }

    draw() {
      const { chart } = this;
      const kept = this.plot ? { min: this.plot.scales.x.min, max: this.plot.scales.x.max } : null;
      if (this.plot) this.plot.destroy();
      this.swatches.forEach((swatch, index) => (swatch.style.background = colourOf(chart.series[index].role)));
      const series = this.shown();
      const columns = drawnValues(chart, series).reverse();
      const style = getComputedStyle(document.documentElement);
      const of = (name) => style.getPropertyValue(`--${name}`).trim();
      const axis = { stroke: of("muted"), grid: { stroke: of("line"), width: 1 }, ticks: { show: false }, font: "13px sans-serif" };
      const bars = uPlot.paths.bars({ size: [0.85, 72], align: chart.stacked === undefined ? 0 : 1 });
      const drawn = series.map((one) => {
        const stroke = colourOf(one.role);
        return chart.type === "bars"
          ? { stroke, fill: stroke, width: 0, paths: bars, points: { show: false } }
          : { stroke, width: 2, points: { show: false } };
      });
      const options = {
        width: Math.max(200, this.box.clientWidth), height: HEIGHT, ms: 1e-3, legend: { show: false },
        tzDate: (at) => uPlot.tzDate(new Date(at * 1000), "Etc/UTC"),
        series: [{}, ...drawn.reverse()],
        scales: {
          x: { time: this.time, range: (_, min, max) => (kept || min !== chart.at[0] ? [min, max] : this.span) },
          y: chart.y.scale === "log" ? { distr: 3 } : { range: (_, min, max) => [Math.min(0, min), max > 0 ? max * 1.05 : 1] },
        },
        axes: [
          { ...axis, ...(this.time ? { space: 84, values: (_, splits) => splits.map(day) } : {}) },
          { ...axis, size: 72, values: (_, splits) => scaleText(chart, splits) },
        ],
        cursor: { y: false, drag: { x: true, y: false } },
        hooks: { setCursor: [(plot) => this.say(plot.cursor.idx)], setScale: [(plot, key) => key === "x" && this.note(plot)] },
      };
      this.plot = new uPlot(options, [chart.at, ...columns], this.canvas);
      if (kept) this.plot.setScale("x", kept);
      this.say(null);
    }

    note(plot) {
      if (!this.time) return;
      this.from.value = day(Math.max(plot.scales.x.min, this.span[0]));
      this.to.value = day(Math.min(plot.scales.x.max, this.span[1]) - 1);
    }

    say(index) {
      const { chart } = this;
      if (index === null || index === undefined) {
        this.values.textContent = "";
        return;
      }
      const at = this.time ? day(chart.at[index]) : `${chart.x.title} ${chart.at[index]}`;
      this.values.textContent = `${at}: ${this.shown().map((one) => `${one.name} ${figure(one.y[index], chart.y)}`).join(", ")}`;
    }
  }

  function prepare(box) {
    const drawings = [...box.querySelectorAll(".for-desk, .for-telephone")];
    const zoomed = made("div", { hidden: true });
    const button = made("button", { type: "button", textContent: "Zoom and filter" });
    let chart = null;
    button.onclick = async () => {
      const open = zoomed.hidden;
      if (open && !chart) {
        try {
          const found = await data();
          zoomed.hidden = false;
          chart = new ZoomedChart(zoomed, found.charts[Number(box.dataset.chart)]);
        } catch {
          button.after(made("span", { className: "small muted", textContent: ` ${FAILED}` }));
          return;
        }
      }
      zoomed.hidden = !open;
      for (const one of drawings) one.hidden = open;
      button.textContent = open ? "Back to the whole chart" : "Zoom and filter";
    };
    box.append(zoomed, button);
  }

  function filterRows(table) {
    const rows = [...table.querySelectorAll("tbody tr")];
    if (rows.length < 5) return;
    const field = made("input", { type: "search", maxLength: 80 });
    field.oninput = () => {
      const wanted = field.value.trim().toLowerCase();
      for (const row of rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
    };
    table.parentElement.before(made("p", { className: "small" }, made("label", {}, "Filter these rows ", field)));
  }

  if (!place) return;
  for (const box of place.querySelectorAll("figure[data-chart]")) prepare(box);
  const table = document.querySelector("#table ~ .view-table table");
  if (table) filterRows(table);
})();
