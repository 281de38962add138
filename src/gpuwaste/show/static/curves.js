"use strict";
// A job's curves: one small chart for each GPU, all on one axis of time, loaded when they come into view. The page is
// whole without it.
(function () {
  const place = document.getElementById("curves");
  if (!place) return;
  const GIB = 2 ** 30;
  const HELD_CPUS = Number(place.dataset.cpus) || null; // of a job on one node
  const QUANTITIES = {
    util_pct: { name: "utilization", unit: "%", divisor: 1, hour: "util_pct", top: () => 100 },
    mem_used_b: { name: "memory", unit: "GiB", divisor: GIB, hour: "mem_max_b", top: (gpu) => gpu.mem_total_b },
    power_w: { name: "power", unit: "W", divisor: 1, hour: "power_w", top: (gpu) => gpu.power_limit_w },
    sm_pct: { name: "busy multiprocessors", unit: "%", divisor: 1, hour: null, top: () => 100 },
    cpus: { name: "busy CPUs", unit: "CPUs", divisor: 1, hour: "cpus", top: () => HELD_CPUS },
  };
  const FAILED = {
    401: "You are signed out. Reload this page to sign in.",
    404: "Not found.",
    429: "Too many requests for curves. Load them again in a minute.",
    503: "The hub is fetching the curves of other jobs. Load them again in a few seconds.",
  };
  const MOST_PLOTS = 16; // at a time
  const HEIGHT = 96;
  const AXIS = 40;
  const status = place.querySelector("[role=status]");
  const tabs = place.querySelector("fieldset");
  const plots = place.querySelector(".plots");
  const more = place.querySelector(".more");
  const again = place.querySelector(".again");
  const link = place.querySelector("a");
  const NEAR = "200px"; // loaded so far before they can be seen
  let rows = {}; // of each quantity
  let shown = [];

  const two = (number) => String(number).padStart(2, "0");
  const clock = (at) => `${two(at.getHours())}:${two(at.getMinutes())}`;
  const day = (at) => `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  const known = (values) => values.filter((value) => value !== null);

  function figure(value, quantity) {
    return `${value >= 100 || quantity.unit === "%" ? Math.round(value) : value.toFixed(1)} ${quantity.unit}`;
  }

  function say(lines) {
    status.replaceChildren(
      ...[...new Set(lines)].map((line) => Object.assign(document.createElement("p"), { className: "muted small", textContent: line })),
    );
  }

  // What there is to draw: a row is one GPU, or one node where the quantity is of the job on a node.
  function scaled(values, quantity) {
    return values && values.map((value) => (value === null ? null : value / quantity.divisor));
  }

  function ofSamples(title, node, gpu, key) {
    const quantity = QUANTITIES[key];
    const series = gpu[key];
    if (!series) return null;
    const top = quantity.top(gpu);
    return {
      title, quantity, x: node.t_ms, top: top && top / quantity.divisor, stepped: false,
      mean: scaled(series.mean, quantity), min: scaled(series.min, quantity), max: scaled(series.max, quantity),
    };
  }

  function ofHours(title, hours, key) {
    const quantity = QUANTITIES[key];
    const x = [];
    const mean = [];
    for (const hour of hours) {
      const end = x.length && x[x.length - 1];
      if (end && end < hour.t0_ms) {
        x.push(end + 1);
        mean.push(null);
      } else if (end) {
        x.pop();
        mean.pop();
      }
      const value = quantity.hour ? hour[quantity.hour] : null;
      x.push(hour.t0_ms, hour.t1_ms);
      mean.push(value, value);
    }
    return known(mean).length
      ? { title, quantity, x, mean: scaled(mean, quantity), min: null, max: null, top: quantity.top({}), stepped: true }
      : null;
  }

  function grouped(items, keyOf) {
    const found = new Map();
    for (const item of items) {
      const key = keyOf(item);
      if (!found.has(key)) found.set(key, []);
      found.get(key).push(item);
    }
    return found;
  }

  function gpusOf(run) {
    const found = [];
    for (const node of run.nodes) {
      if (node.gpus.length) {
        for (const gpu of node.gpus) found.push({ node, id: `${gpu.gpu_uuid} ${gpu.instance}`, gpu, hours: [] });
      } else {
        for (const [id, hours] of grouped(node.hours, (hour) => hour.gpu_uuid)) {
          found.push({ node, id, gpu: null, hours });
        }
      }
    }
    const order = (one) => `${one.node.node} ${one.id}`;
    return found.sort((one, other) => (order(one) < order(other) ? -1 : 1));
  }

  function cpusOf(prefix, node) {
    const hours = [...grouped(node.hours, (hour) => hour.t0_ms).values()].map((of) =>
      of.reduce((best, hour) => ((hour.cpus ?? -1) > (best.cpus ?? -1) ? hour : best)),
    );
    return ofHours(`${prefix}CPUs on ${node.node}`, hours.sort((one, other) => one.t0_ms - other.t0_ms), "cpus");
  }

  function rowsOf(runs) {
    const found = Object.fromEntries(Object.keys(QUANTITIES).map((key) => [key, []]));
    for (const run of runs) {
      const prefix = runs.length > 1 ? `${run.printed_id} ` : "";
      gpusOf(run).forEach((one, index) => {
        const instance = one.gpu && one.gpu.instance ? `, instance ${one.gpu.instance}` : "";
        const title = `${prefix}GPU ${index}${instance} on ${one.node.node}`;
        for (const key of Object.keys(QUANTITIES)) {
          if (key === "cpus") continue;
          found[key].push(one.gpu ? ofSamples(title, one.node, one.gpu, key) : ofHours(title, one.hours, key));
        }
      });
      for (const node of run.nodes) found.cpus.push(cpusOf(prefix, node));
    }
    for (const key of Object.keys(found)) found[key] = found[key].filter((row) => row !== null);
    return found;
  }

  function wordsOf(found) {
    const lines = [];
    const nodes = found.runs.flatMap((run) => run.nodes);
    for (const node of nodes.filter((one) => one.words)) {
      const instead = node.gpus.length ? "" : node.hours.length ? "; the curves show hourly means instead" : "; no hourly means exist either";
      lines.push(`${node.node}: ${node.words}${instead}.`);
    }
    const slots = new Set(nodes.filter((node) => node.interval_ms).map((node) => Math.round(node.interval_ms / 1000)));
    if (slots.size) lines.push(`Each value is the mean of ${[...slots].join(" or ")} s; the band is from minimum to maximum.`);
    if (nodes.some((node) => node.source === "prometheus")) lines.push("Some values are from Prometheus.");
    const left = found.runs.reduce((sum, run) => sum + run.nodes_left_out, 0);
    if (left) lines.push(`${left} more nodes are not shown: choose one of them above.`);
    if (found.runs_left_out) lines.push(`${found.runs_left_out} older runs are not shown.`);
    const foreign = nodes.reduce((sum, node) => sum + node.gpus_left_out, 0);
    if (foreign) lines.push(`${foreign} GPUs that are not of this job are left out.`);
    if (!found.runs.length) lines.push("The job has not started.");
    return lines;
  }

  // Charts
  function ticks(_, splits, __, ___, stepMs) {
    let last = "";
    return splits.map((split) => {
      const at = new Date(split);
      const date = day(at);
      const time = stepMs < 60000 ? `${clock(at)}:${two(at.getSeconds())}` : clock(at);
      const words = date === last ? time : `${time}\n${date}`;
      last = date;
      return words;
    });
  }

  // Hours differ in length, and each but the last ends where the next begins: they count by their time.
  function meanOf(row) {
    let sum = 0;
    let whole = 0;
    row.mean.forEach((value, index) => {
      const weight = row.stepped ? (index + 1 < row.x.length ? row.x[index + 1] - row.x[index] : 0) : 1;
      if (value === null) return;
      sum += value * weight;
      whole += weight;
    });
    return whole ? sum / whole : 0;
  }

  function summary(row) {
    const values = known(row.mean);
    if (!values.length) return "unknown";
    const mean = meanOf(row);
    const most = Math.max(...known(row.max || row.mean));
    const held = row.quantity === QUANTITIES.cpus && HELD_CPUS ? `, ${HELD_CPUS} held` : "";
    return `mean ${figure(mean, row.quantity)}, maximum ${figure(most, row.quantity)}${held}`;
  }

  function plotted(row, span, last, colours) {
    const box = document.createElement("figure");
    const caption = document.createElement("figcaption");
    const values = document.createElement("span");
    const canvas = document.createElement("div");
    values.className = "number";
    values.textContent = summary(row);
    caption.append(row.title, values);
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", `${row.title}, ${row.quantity.name} over time: ${values.textContent}`);
    box.append(caption, canvas);
    plots.append(box);
    const ends = (column, value) => [value, ...column, value];
    const data = [[span[0] - 1, ...row.x, span[1] + 1], ends(row.mean, null)];
    const line = { stroke: colours.line, width: 1.5, points: { show: false } };
    if (row.stepped) line.paths = uPlot.paths.stepped({ align: 1 });
    const series = [{}, line];
    if (row.min && row.max) {
      data.push(ends(row.min, null), ends(row.max, null));
      series.push({ stroke: "transparent", points: { show: false } }, { stroke: "transparent", points: { show: false } });
    }
    const axis = { stroke: colours.text, grid: { stroke: colours.grid, width: 1 }, ticks: { show: false }, font: "12px sans-serif" };
    const made = new uPlot(
      {
        width: Math.max(200, plots.clientWidth), height: HEIGHT + (last ? AXIS : 0), ms: 1, series,
        padding: [8, 36, last ? 0 : 8, 0], legend: { show: false },
        bands: row.min && row.max ? [{ series: [3, 2], fill: colours.band }] : [],
        cursor: { sync: { key: "curves", scales: ["x", null] }, y: false, drag: { x: true, y: false } },
        scales: { y: { range: (_, __, max) => [0, Math.max(row.top || 0, max || 0) || 1] } },
        axes: [
          { ...axis, show: last, size: AXIS, space: 76, values: ticks },
          { ...axis, size: 64, space: 30, values: (_, splits) => splits.map((split) => `${split} ${row.quantity.unit}`) },
        ],
        hooks: {
          setCursor: [
            (chart) => {
              const index = chart.cursor.idx;
              const value = index === null || index === undefined ? undefined : chart.data[1][index];
              if (value === undefined) values.textContent = summary(row);
              else {
                const at = new Date(chart.data[0][index]);
                values.textContent = `${day(at)} ${clock(at)}: ${value === null ? "unknown" : figure(value, row.quantity)}`;
              }
            },
          ],
        },
      },
      data,
      canvas,
    );
    shown.push(made);
  }

  function colours() {
    const style = getComputedStyle(document.documentElement);
    const of = (name) => style.getPropertyValue(`--${name}`).trim();
    return { line: of("high"), band: `${of("high")}40`, text: of("muted"), grid: of("line") };
  }

  function draw(add) {
    const wanted = rows[tabs.querySelector("input:checked").value];
    const have = add ? shown.length : 0;
    if (!add) {
      for (const chart of shown) chart.destroy();
      shown = [];
      plots.replaceChildren();
    }
    const batch = wanted.slice(have, have + MOST_PLOTS);
    const ends = wanted.flatMap((row) => (row.x.length ? [row.x[0], row.x[row.x.length - 1]] : []));
    const span = [Math.min(...ends), Math.max(...ends)];
    const palette = colours();
    batch.forEach((row, index) => plotted(row, span, index === batch.length - 1, palette));
    more.hidden = shown.length >= wanted.length;
    more.textContent = `Show ${Math.min(MOST_PLOTS, wanted.length - shown.length)} more of ${wanted.length}`;
  }

  function present(text) {
    const found = JSON.parse(text);
    rows = rowsOf(found.runs);
    say(wordsOf(found));
    const inputs = [...tabs.querySelectorAll("input")];
    for (const input of inputs) input.closest("label").hidden = !rows[input.value].length;
    const first = inputs.find((input) => rows[input.value].length);
    tabs.hidden = !first;
    place.querySelector(".use").hidden = !first;
    if (!first) {
      plots.replaceChildren();
      return;
    }
    tabs.disabled = false;
    first.checked = true;
    draw(false);
  }

  // The room that the charts will need, so that what is below does not move when they arrive.
  function reserve() {
    const boxes = [];
    for (let index = 0; index < Math.min(MOST_PLOTS, Number(place.dataset.gpus)); index++) {
      const box = document.createElement("figure");
      box.className = "room";
      boxes.push(box);
    }
    plots.replaceChildren(...boxes);
    tabs.hidden = false;
  }

  function failed(words) {
    tabs.hidden = true;
    plots.replaceChildren();
    say([words]);
    again.hidden = false;
  }

  async function load() {
    again.hidden = true;
    reserve();
    say(["Loading the samples from the job's nodes."]);
    let answer;
    let text;
    try {
      answer = await fetch(link.href);
      text = await answer.text();
    } catch {
      failed("The hub does not answer.");
      return;
    }
    if (answer.ok) {
      performance.mark("curves-data");
      present(text);
      requestAnimationFrame(() => setTimeout(() => performance.measure("curves-drawn", "curves-data"), 0));
    } else {
      failed(FAILED[answer.status] || `The hub answered with status ${answer.status}. Its log has the reason.`);
    }
  }

  const watch = new IntersectionObserver(
    (entries) => {
      if (!entries.some((entry) => entry.isIntersecting)) return;
      watch.disconnect();
      load();
    },
    { rootMargin: NEAR },
  );

  again.addEventListener("click", load);
  tabs.addEventListener("change", () => draw(false));
  more.addEventListener("click", () => draw(true));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => shown.length && draw(false));
  new ResizeObserver(() => {
    for (const chart of shown) {
      if (plots.clientWidth && chart.width !== plots.clientWidth) chart.setSize({ width: plots.clientWidth, height: chart.height });
    }
  }).observe(plots);
  reserve();
  say(["The curves load when they come into view."]);
  watch.observe(place);
})();
