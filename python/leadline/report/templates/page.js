// Sorts tables, opens the part that an address names, and saves charts as pictures. No network, no eval.
(() => {
  "use strict";

  // ── Tables ────────────────────────────────────────────────────────────────
  const key = (row, column) => {
    const cell = row.cells[column];
    const text = cell.dataset.sort ?? cell.textContent.trim();
    const number = Number(text);
    return text !== "" && Number.isFinite(number) ? number : text;
  };
  const order = (a, b) => {
    if (a === "" || b === "") return 0;
    return typeof a === "number" && typeof b === "number"
      ? a - b
      : String(a).localeCompare(String(b), "en", { numeric: true });
  };
  const sort = (heading) => {
    const table = heading.closest("table");
    const column = heading.cellIndex;
    const up = heading.getAttribute("aria-sort") !== "ascending";
    for (const other of table.tHead.rows[0].cells) {
      if (other.hasAttribute("aria-sort")) other.setAttribute("aria-sort", "none");
    }
    heading.setAttribute("aria-sort", up ? "ascending" : "descending");
    table.classList.remove("grouped");
    const body = table.tBodies[0];
    const rows = [...body.rows].map((row) => ({ row, key: key(row, column) }));
    // What has no value stays last in both directions.
    rows.sort((a, b) => (a.key === "") - (b.key === "") || order(a.key, b.key) * (up ? 1 : -1));
    body.append(...rows.map((entry) => entry.row));
  };
  for (const button of document.querySelectorAll("table.sortable th button")) {
    button.type = "button";
    button.addEventListener("click", () => sort(button.closest("th")));
  }

  // ── Parts ─────────────────────────────────────────────────────────────────
  const reveal = () => {
    let name = "";
    try {
      name = decodeURIComponent(location.hash.slice(1));
    } catch {
      return;
    }
    const place = name && document.getElementById(name);
    if (!place) return;
    for (let part = place.closest("details"); part; part = part.parentElement.closest("details")) part.open = true;
    place.scrollIntoView();
  };
  addEventListener("hashchange", reveal);
  reveal();

  // ── Charts ────────────────────────────────────────────────────────────────
  // A page made where the charts could be drawn has them already. Another brings what draws them, packed.
  const unpacked = async (name) => {
    const packed = Uint8Array.from(atob(document.getElementById(name).textContent.trim()), (one) => one.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(stream).text();
  };
  const drawAll = async () => {
    const script = document.createElement("script");
    script.textContent = await unpacked("chart-runtime");
    document.head.append(script);
    const { config, width, charts } = JSON.parse(await unpacked("chart-data"));
    const how = { actions: false, ast: true, config, defaultStyle: false, mode: "vega-lite", renderer: "svg", tooltip: false };
    const draw = async (figure) => {
      const place = figure.querySelector(".chart");
      const drawn = document.createElement("div");
      await window.vegaEmbed(drawn, { ...charts[figure.dataset.chart], width }, how);
      const svg = drawn.querySelector("svg");
      svg.setAttribute("viewBox", `0 0 ${svg.getAttribute("width")} ${svg.getAttribute("height")}`);
      svg.setAttribute("aria-hidden", "true");
      for (const part of svg.querySelectorAll("[role], [aria-roledescription]")) {
        for (const name of ["role", "aria-roledescription"]) part.removeAttribute(name);
      }
      place.replaceChildren(svg);
    };
    const shown = (figure) => !figure.closest("details:not([open])") && !figure.querySelector("svg");
    const drawShown = async () => {
      for (const figure of [...document.querySelectorAll("figure")].filter(shown)) await draw(figure);
    };
    for (const part of document.querySelectorAll("details")) part.addEventListener("toggle", drawShown);
    await drawShown();
  };
  const ready = document.getElementById("chart-runtime") ? drawAll() : Promise.resolve();
  ready.then(() => {
    document.documentElement.dataset.charts = "drawn";
  });

  // ── Pictures ──────────────────────────────────────────────────────────────
  // A saved picture stands alone: light colours, its title, its legend.
  const SVG = "http://www.w3.org/2000/svg";
  const element = (name, attributes, text = "") => {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.textContent = text;
    return made;
  };
  const inLight = (svg) => {
    const colours = getComputedStyle(document.getElementById("paper"));
    const resolved = (_, name) => colours.getPropertyValue(name).trim();
    for (const part of svg.querySelectorAll("*")) {
      for (const { name, value } of [...part.attributes]) {
        if (value.includes("var(")) part.setAttribute(name, value.replace(/var\((--[a-z0-9-]+)\)/g, resolved));
      }
    }
  };
  const legendOf = (figure, width, top) => {
    const group = element("g", { "font-size": 12 });
    let [x, y] = [0, top];
    for (const entry of figure.closest(".body, main")?.querySelectorAll("ul.legend li") ?? []) {
      const words = entry.textContent.trim();
      const room = 46 + 7 * words.length;
      if (x + room > width && x > 0) [x, y] = [0, y + 20];
      const mark = entry.querySelector("svg > *").cloneNode(true);
      const colour = `var(--${mark.getAttribute("class")})`;
      mark.setAttribute("stroke", colour);
      mark.setAttribute("fill", colour);
      mark.setAttribute("stroke-width", 2);
      const place = element("g", { transform: `translate(${x},${y})` });
      place.append(mark, element("text", { x: 40, y: 10, fill: "var(--ink)" }, words));
      group.append(place);
      x += room;
    }
    return [group, group.childElementCount ? y + 20 : top];
  };
  const standalone = (figure) => {
    const chart = figure.querySelector(".chart > svg").cloneNode(true);
    const [width, height] = ["width", "height"].map((name) => Number(chart.getAttribute(name)));
    const title = [...figure.querySelectorAll("figcaption b, figcaption .unit")].map((one) => one.textContent);
    const heading = element("text", { y: 14, "font-size": 13, "font-weight": 600, fill: "var(--ink)" });
    heading.textContent = title.filter(Boolean).join(", ");
    const [legend, bottom] = legendOf(figure, width, height + 34);
    const whole = element("svg", { xmlns: SVG, width: width + 28, height: bottom + 24, "font-family": "sans-serif" });
    const inner = element("g", { transform: "translate(14,14)" });
    chart.setAttribute("y", 24);
    inner.append(heading, chart, legend);
    whole.append(element("rect", { width: "100%", height: "100%", fill: "white" }), inner);
    inLight(whole);
    return [new XMLSerializer().serializeToString(whole), width + 28, bottom + 24, title[0]];
  };
  const asPng = async (address, width, height) => {
    const image = new Image();
    image.src = address;
    await image.decode();
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [2 * width, 2 * height];
    canvas.getContext("2d").drawImage(image, 0, 0, 2 * width, 2 * height);
    return canvas.toDataURL("image/png");
  };
  const save = async (figure, kind) => {
    const [text, width, height, title] = standalone(figure);
    const address = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
    const link = document.createElement("a");
    link.href = kind === "png" ? await asPng(address, width, height) : address;
    link.download = `${title.replace(/[^\w.-]+/g, "_")}-${figure.dataset.chart}.${kind}`;
    document.body.append(link);
    link.click();
    link.remove();
  };
  for (const button of document.querySelectorAll("[data-save]")) {
    button.type = "button";
    button.addEventListener("click", () => save(button.closest("figure"), button.dataset.save));
  }
})();
