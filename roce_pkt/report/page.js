"use strict";
// Draws a report from the JSON beside it. Every name becomes a text node or is escaped: none is markup.
(() => {
  const page = JSON.parse(document.getElementById("data").textContent);
  const root = document.getElementById("page");
  // Okabe and Ito's palette, told apart by colour-blind readers, on light and on dark
  const PALETTE = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b8860b", "#56b4e9", "#8b5cf6", "#e11d48", "#65a30d", "#0d9488"];
  const NEUTRAL = "#8a8f98";
  const CURVE_HEIGHT = 190, LANE_HEIGHT = 20, GAP = 46, TOP = 34, BOTTOM = 46;
  const LONG = 60, PRINTED = { width: 720, height: 700 }; // a picture on one sheet of A4 or Letter, below its heading
  const MOST_SHADES = 60, ROWS_AT_ONCE = 200;
  const SYMBOLS = { dot: "circle", ring: "circle-open", cross: "x-thin-open", tick: "line-ns-open" };

  function make(tag, attributes, ...children) {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) {
      if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
      else if (value !== null && value !== undefined) node.setAttribute(name, value);
    }
    node.append(...children);
    return node;
  }

  // plotly reads a little markup in names and under the pointer
  const escape = (text) => String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");

  function numbers(array) {
    const octets = Uint8Array.from(atob(array.bdata), (c) => c.charCodeAt(0));
    return array.dtype === "f8" ? new Float64Array(octets.buffer) : new Float32Array(octets.buffer);
  }

  function scaled(value, steps) {
    const [factor, unit] = steps.find(([size]) => Math.abs(value) >= size) || steps[steps.length - 1];
    return `${Number((value / factor).toPrecision(4))} ${unit}`;
  }

  const FORMATS = {
    text: String,
    frame: String,
    number: (v) => v.toLocaleString("en"),
    percent: (v) => `${Number((100 * v).toPrecision(3))} %`,
    rate: (v) => scaled(v, [[1e12, "Tb/s"], [1e9, "Gb/s"], [1e6, "Mb/s"], [1e3, "kb/s"], [1, "b/s"]]),
    bytes: (v) => scaled(v, [[1e12, "TB"], [1e9, "GB"], [1e6, "MB"], [1e3, "KB"], [1, "B"]]),
    time: (v) => scaled(v, [[1e9, "s"], [1e6, "ms"], [1e3, "us"], [1, "ns"]]),
  };
  const cell = (value, kind) => (value === null ? "–" : FORMATS[kind](value));

  // -- groups: what can be switched on and off

  const groups = new Map(page.groups.map((g, i) => [g.key, { ...g, color: g.key === "rest" ? NEUTRAL : PALETTE[i % PALETTE.length], chips: [] }]));
  const colorOf = (key) => (groups.has(key) ? groups.get(key).color : NEUTRAL);
  const isShown = (key) => !groups.has(key) || groups.get(key).shown;

  function chip(group) {
    const flip = () => show([group.key], !group.shown);
    const node = make("button", { class: "chip", type: "button", title: group.name, onclick: flip },
      make("span", { class: "swatch", style: `background:${group.color}` }), group.name);
    group.chips.push(node);
    return node;
  }

  function paintChips() {
    for (const group of groups.values())
      for (const node of group.chips) node.setAttribute("aria-pressed", group.shown);
  }

  function show(keys, visible) {
    for (const key of keys) groups.get(key).shown = visible;
    paintChips();
    if (chart.data) Plotly.restyle(chart, { visible: chart.data.map((trace) => isShown(trace.meta)) });
  }

  // -- the picture

  const chart = make("div", { id: "chart" });

  function curveTrace(panel, curve, axis) {
    // curves without a group are told apart by their place
    const alone = panel.curves.filter((one) => one.group === null && one.weight !== "dotted");
    const color = alone.length > 1 && alone.includes(curve) ? PALETTE[alone.indexOf(curve) % PALETTE.length] : colorOf(curve.group);
    const width = { main: 2, thin: 1, dotted: 1.2 }[curve.weight];
    return {
      type: "scatter", mode: "lines", x: curve.t, y: curve.v, xaxis: "x", yaxis: axis, meta: curve.group,
      visible: isShown(curve.group), opacity: curve.weight === "thin" ? 0.75 : 1,
      line: { shape: curve.shape === "step" ? "hv" : "linear", width, color, dash: curve.weight === "dotted" ? "dot" : "solid" },
      hovertemplate: `${nameOf(curve)}: %{y:.4~g} ${panel.unit}<br>%{x:.6~g} ${page.time_unit}<extra></extra>`,
    };
  }

  const nameOf = (part) => (groups.has(part.group) ? `${escape(part.name)}, ${escape(groups.get(part.group).name)}` : escape(part.name));

  function marksTrace(panel, marks, axis) {
    const x = numbers(marks.t), thin = marks.symbol === "cross" || marks.symbol === "tick";
    return {
      type: "scatter", mode: "markers", x, y: new Array(x.length).fill(panel.lanes.indexOf(marks.lane)),
      xaxis: "x", yaxis: axis, meta: marks.group, visible: isShown(marks.group),
      marker: { symbol: SYMBOLS[marks.symbol], size: thin ? 9 : 6, color: colorOf(marks.group), line: { width: 1.5, color: colorOf(marks.group) } },
      text: marks.notes.map(escape),
      hovertemplate: `${nameOf(marks)}${marks.notes.length ? "<br>%{text}" : ""}<br>%{x:.6~g} ${page.time_unit}<extra></extra>`,
    };
  }

  function bandsTrace(panel, bands, axis) {
    const from = numbers(bands.from), to = numbers(bands.to), lane = panel.lanes.indexOf(bands.lane);
    const x = [], y = [];
    from.forEach((start, i) => { x.push(start, to[i], null); y.push(lane, lane, null); });
    return {
      type: "scatter", mode: "lines+markers", x, y, xaxis: "x", yaxis: axis, meta: bands.group, visible: isShown(bands.group),
      line: { width: 9, color: colorOf(bands.group) }, marker: { symbol: "line-ns-open", size: 9, color: colorOf(bands.group), line: { width: 1, color: colorOf(bands.group) } },
      hovertemplate: `${nameOf(bands)}<br>%{x:.6~g} ${page.time_unit}<extra></extra>`,
    };
  }

  function barTraces(panel, across, axis) {
    const x = panel.bars.map(([name]) => name), y = panel.bars.map(([, value]) => value);
    const said = `%{x}: %{y:.4~g} ${panel.unit}<extra></extra>`, shared = { x, xaxis: across, yaxis: axis, meta: null, hovertemplate: said };
    const level = { type: "scatter", mode: "lines", ...shared, y: x.map(() => panel.level), line: { color: NEUTRAL, dash: "dot", width: 1.2 } };
    return [{ type: "bar", ...shared, y, marker: { color: PALETTE[0] } }, ...(panel.level ? [level] : [])];
  }

  function shades() {
    const out = [];
    for (const panel of page.panels)
      for (const bands of panel.bands) {
        if (!bands.shade) continue;
        const from = numbers(bands.from), to = numbers(bands.to);
        from.forEach((x0, i) => out.push({ type: "rect", xref: "x", yref: "paper", x0, x1: to[i], y0: 0, y1: 1, layer: "below", line: { width: 0 }, fillcolor: "rgba(213,94,0,0.10)" }));
      }
    const since = page.since > 0 && page.since < page.span ? [{ type: "line", xref: "x", yref: "paper", x0: page.since, x1: page.since, y0: 0, y1: 1, line: { width: 1, dash: "dash", color: NEUTRAL } }] : [];
    return [...(out.length > MOST_SHADES ? [] : out), ...since];
  }

  const heightOf = (panel) => (panel.lanes.length ? LANE_HEIGHT * panel.lanes.length + 8 : CURVE_HEIGHT);

  function colors() {
    const style = getComputedStyle(document.documentElement);
    return { ink: style.getPropertyValue("--ink").trim(), faint: style.getPropertyValue("--line").trim(), paper: style.getPropertyValue("--paper").trim() };
  }

  function picture() {
    const { ink, faint, paper } = colors();
    const plot = page.panels.reduce((sum, panel) => sum + heightOf(panel) + GAP, -GAP);
    const layout = {
      height: plot + TOP + BOTTOM, margin: { l: 78, r: 14, t: TOP, b: BOTTOM }, autosize: true, showlegend: false,
      paper_bgcolor: paper, plot_bgcolor: paper, font: { color: ink, size: 12, family: "system-ui, sans-serif" },
      hovermode: "closest", hoverlabel: { align: "left", namelength: -1 }, dragmode: "zoom", shapes: shades(), annotations: [],
      xaxis: { title: { text: `time, ${page.time_unit}`, standoff: 6 }, range: [0, page.span], gridcolor: faint, zeroline: false, showspikes: true, spikemode: "across", spikethickness: 1, spikedash: "dot", spikecolor: ink },
    };
    const traces = [];
    let top = 1;
    page.panels.forEach((panel, i) => {
      const share = heightOf(panel) / plot, axis = i ? `y${i + 1}` : "y", key = i ? `yaxis${i + 1}` : "yaxis";
      layout[key] = { domain: [Math.max(0, top - share), top], gridcolor: faint, zeroline: false, fixedrange: panel.lanes.length > 0, anchor: "x" };
      if (panel.bars.length) {
        const across = `xaxis${i + 1}`;
        layout[across] = { anchor: axis, type: "category", tickfont: { size: 10 }, fixedrange: true };
        Object.assign(layout[key], { title: { text: panel.unit, standoff: 4 }, rangemode: "tozero", anchor: `x${i + 1}` });
        traces.push(...barTraces(panel, `x${i + 1}`, axis));
      } else if (panel.lanes.length)
        Object.assign(layout[key], { range: [panel.lanes.length - 0.5, -0.5], tickvals: panel.lanes.map((_, lane) => lane), ticktext: panel.lanes.map(escape), tickfont: { size: 10 }, automargin: true });
      else Object.assign(layout[key], { title: { text: panel.unit, standoff: 4 }, rangemode: "tozero", ...(panel.top ? { range: [0, panel.top] } : {}), ...(panel.log ? { type: "log", rangemode: "normal", dtick: 1 } : {}) });
      const heading = `<b>${escape(panel.title)}</b>${panel.note ? `  ${escape(panel.note)}` : ""}`;
      layout.annotations.push({ text: heading, xref: "paper", yref: "paper", x: 0, y: top, xanchor: "left", yanchor: "bottom", showarrow: false, font: { size: 12 } });
      for (const bands of panel.bands) traces.push(bandsTrace(panel, bands, axis));
      for (const curve of panel.curves) traces.push(curveTrace(panel, curve, axis));
      for (const marks of panel.marks) traces.push(marksTrace(panel, marks, axis));
      top -= share + GAP / plot;
    });
    const last = page.panels.map((panel) => !panel.bars.length).lastIndexOf(true);
    layout.xaxis.anchor = last > 0 ? `y${last + 1}` : "y";
    const config = { responsive: true, displaylogo: false, modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"], doubleClick: "reset" };
    Plotly.newPlot(chart, traces, layout, config).then(() => { document.documentElement.dataset.ready = "yes"; });
  }

  function repaint() {
    if (!chart.data) return;
    const { ink, faint, paper } = colors(), change = { paper_bgcolor: paper, plot_bgcolor: paper, "font.color": ink, "xaxis.gridcolor": faint, "xaxis.spikecolor": ink };
    page.panels.forEach((_, i) => { change[`yaxis${i ? i + 1 : ""}.gridcolor`] = faint; });
    Plotly.relayout(chart, change);
  }

  // -- tables

  function table(data) {
    const state = { column: null, down: true, words: [], all: false };
    const rows = data.rows.map((values, i) => {
      const texts = values.map((value, c) => cell(value, data.columns[c][1]));
      return { values, texts, group: data.groups[i] || null, hay: texts.join(" ").toLowerCase() };
    });
    const body = make("tbody"), status = make("span", { class: "status" }), more = make("button", { type: "button", onclick: () => { state.all = true; draw(); } });
    const heads = data.columns.map(([name, kind], column) => make("th", { scope: "col", class: kind === "text" ? null : "right" },
      make("button", { type: "button", onclick: () => { state.down = state.column === column ? !state.down : kind !== "text"; state.column = column; draw(); } }, name)));

    function order(a, b) {
      const left = a.values[state.column], right = b.values[state.column];
      if (left === null || right === null) return (left === null) - (right === null);
      const sign = state.down ? -1 : 1;
      return sign * (typeof left === "string" ? left.localeCompare(right, "en", { numeric: true }) : left - right);
    }

    function line(row) {
      const cells = row.texts.map((text, c) => make("td", { class: data.columns[c][1] === "text" ? null : "right" }, text));
      const group = groups.get(row.group);
      if (group) cells[0].prepend(make("span", { class: "swatch", style: `background:${group.color}` }));
      if (data.severities) return make("tr", { class: row.texts[0] }, ...cells);
      return make("tr", group ? { class: "link", title: "show or hide in the picture", onclick: () => show([group.key], !group.shown) } : {}, ...cells);
    }

    function draw() {
      let found = rows.filter((row) => state.words.every((word) => row.hay.includes(word)));
      if (state.column !== null) found = [...found].sort(order);
      const drawn = state.all ? found : found.slice(0, ROWS_AT_ONCE);
      body.replaceChildren(...drawn.map(line));
      heads.forEach((head, c) => head.setAttribute("aria-sort", c !== state.column ? "none" : state.down ? "descending" : "ascending"));
      const all = `${FORMATS.number(rows.length)} ${rows.length === 1 ? "row" : "rows"}`;
      status.textContent = found.length === rows.length ? all : `${FORMATS.number(found.length)} of ${all}`;
      more.hidden = drawn.length === found.length;
      more.textContent = `show all ${FORMATS.number(found.length)}`;
    }

    const filter = make("input", { type: "search", placeholder: "filter", "aria-label": `filter ${data.title}`, oninput: (event) => { state.words = event.target.value.toLowerCase().split(/\s+/).filter(Boolean); draw(); } });
    draw();
    return make("section", {}, make("div", { class: "bar" }, make("h2", {}, data.title), filter, status),
      make("div", { class: "wide" }, make("table", {}, make("thead", {}, make("tr", {}, ...heads)), body)), more,
      ...(data.note ? [make("p", { class: "note" }, data.note)] : []));
  }

  function findings() {
    const rows = page.findings.map((f) => [f.severity, f.frame, f.rule, f.text]);
    if (!rows.length) return make("section", {}, make("h2", {}, "Findings"), make("p", { class: "note" }, "Nothing to report."));
    const section = table({ title: "Findings", columns: [["severity", "text"], ["frame", "frame"], ["rule", "text"], ["what", "text"]], rows, groups: [], note: "", severities: true });
    section.classList.add("findings");
    return section;
  }

  function parameters() {
    const rows = page.parameters.map(([name, value, source, doc]) => make("tr", {}, make("td", {}, make("code", {}, name)), make("td", {}, value), make("td", {}, doc), make("td", { class: "faint" }, source)));
    return make("section", { class: "parameters" }, make("details", { open: "" }, make("summary", {}, make("h2", {}, `Parameters (${rows.length})`)), make("div", { class: "wide" }, make("table", {}, make("tbody", {}, ...rows)))));
  }

  // -- the page

  function flipTheme() {
    const html = document.documentElement, dark = matchMedia("(prefers-color-scheme: dark)").matches;
    html.dataset.theme = (html.dataset.theme || (dark ? "dark" : "light")) === "dark" ? "light" : "dark";
    repaint();
  }

  document.title = `${page.title} · roce-pkt`;
  const facts = make("dl", { class: "facts" }, ...page.facts.map(([name, value]) => make("div", { class: value.length > LONG ? "long" : null }, make("dt", {}, name), make("dd", {}, value))));
  root.append(make("header", {}, make("h1", {}, page.title), make("button", { id: "theme", type: "button", onclick: flipTheme }, "light / dark")), facts);
  const keys = [...groups.keys()];
  if (page.panels.length) {
    const chips = make("div", { class: "chips" }, ...[...groups.values()].map(chip));
    if (keys.length > 2) chips.append(make("button", { type: "button", class: "chip plain", onclick: () => show(keys, true) }, "all"), make("button", { type: "button", class: "chip plain", onclick: () => show(keys, false) }, "none"));
    root.append(make("section", { class: "picture" }, chips, chart));
  }
  root.append(findings(), ...page.tables.map(table));
  if (page.parameters.length) root.append(parameters());
  paintChips();
  if (page.panels.length) picture();
  else document.documentElement.dataset.ready = "yes";
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
  let before = null, tall = 0;
  addEventListener("beforeprint", () => {
    before = document.documentElement.dataset.theme || "";
    document.documentElement.dataset.theme = "light";
    repaint();
    tall = chart.data ? chart.layout.height : 0;
    if (chart.data) Plotly.relayout(chart, { width: PRINTED.width, height: Math.min(tall, PRINTED.height) });
  });
  addEventListener("afterprint", () => {
    if (before) document.documentElement.dataset.theme = before;
    else delete document.documentElement.dataset.theme;
    repaint();
    if (chart.data) Plotly.relayout(chart, { width: null, height: tall, autosize: true });
  });
})();
