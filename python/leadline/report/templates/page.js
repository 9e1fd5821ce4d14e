// Sorts tables, draws the charts and saves them. No network, no eval: Vega runs its interpreter (`ast`).
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

  // ── Charts ────────────────────────────────────────────────────────────────
  const data = JSON.parse(document.getElementById("chart-data").textContent);
  const options = (config) => ({
    actions: false,
    ast: true,
    config,
    defaultStyle: false,
    mode: "vega-lite",
    renderer: "svg",
    tooltip: false,
  });

  const drawAll = async () => {
    for (const place of document.querySelectorAll("[data-chart]")) {
      const { spec } = data.charts[place.dataset.chart];
      await window.vegaEmbed(place, structuredClone(spec), options(data.config));
    }
    document.documentElement.dataset.charts = "drawn";
  };

  // A saved picture stands alone: light colours, its title, its legend.
  const standalone = (id) => {
    const colours = getComputedStyle(document.getElementById("paper"));
    const resolved = (value) =>
      JSON.parse(
        JSON.stringify(value).replace(/"var\((--[a-z0-9-]+)\)"/g, (_, name) =>
          JSON.stringify(colours.getPropertyValue(name).trim()),
        ),
      );
    const { spec, title, unit } = data.charts[id];
    const picture = resolved(spec);
    Object.assign(picture, { width: 560, autosize: "pad", padding: 14, background: "white", title: `${title}, ${unit}` });
    picture.height = Math.max(picture.height, id.startsWith("rate-") ? 0 : 300);
    if (!id.startsWith("rate-")) {
      for (const layer of picture.layer) {
        for (const channel of Object.values(layer.encoding)) {
          if (channel.legend === null) channel.legend = { title: null, orient: "bottom" };
        }
      }
    }
    return [picture, options(resolved(data.config))];
  };

  const save = async (id, kind) => {
    const [picture, how] = standalone(id);
    const { view } = await window.vegaEmbed(document.createElement("div"), picture, how);
    const link = document.createElement("a");
    link.href = await view.toImageURL(kind, kind === "png" ? 2 : 1);
    link.download = `${data.charts[id].title.replace(/[^\w.-]+/g, "_")}-${id}.${kind}`;
    document.body.append(link);
    link.click();
    link.remove();
    view.finalize();
  };
  for (const button of document.querySelectorAll("[data-save]")) {
    button.type = "button";
    button.addEventListener("click", () => save(button.dataset.for, button.dataset.save));
  }

  drawAll();
})();
