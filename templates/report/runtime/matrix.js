// A matrix of bytes as coloured cells, on a logarithmic scale.
function drawMatrix(canvas, legend, names, cells, hint, title) {
  const number = names.length, named = number <= 40;
  const pen0 = canvas.getContext("2d");
  pen0.font = "12px system-ui, sans-serif";
  const label = named ? Math.min(150, 12 + Math.max(...names.map((n) => pen0.measureText(cut(n, 20)).width))) : 30;
  const room = canvas.parentElement.clientWidth - label - 4, cell = Math.max(2, Math.min(64, Math.floor(Math.min(room, 620) / number)));
  const widest = Math.max(...names.map((n) => pen0.measureText(cut(n, 9)).width)), slanted = named && (cell < 60 || widest > cell - 8), head = named ? (slanted ? Math.min(110, 0.72 * label + 16) : 20) : 14;
  let top = 0, low = Infinity;
  for (const value of cells.values()) { top = Math.max(top, value); if (value > 0) low = Math.min(low, value); }
  const shade = (value) => (top > low ? 0.08 + 0.92 * (Math.log(value) - Math.log(low)) / (Math.log(top) - Math.log(low)) : 1);
  function draw() {
    const pen = sharp(canvas, label + number * cell + (slanted ? 60 : 2), head + number * cell + 2);
    pen.font = "12px system-ui, sans-serif";
    pen.textBaseline = "middle";
    pen.fillStyle = theme("empty");
    pen.fillRect(label, head, number * cell, number * cell);
    for (const [key, value] of cells) {
      if (!(value > 0)) continue;
      const row = Math.floor(key / number), column = key % number, x = label + column * cell, y = head + row * cell, gap = cell > 6 ? 1 : 0, s = shade(value);
      pen.fillStyle = ramp(s);
      pen.fillRect(x, y, cell - gap, cell - gap);
      if (cell >= 52) {
        pen.fillStyle = s > 0.6 ? "#1c2530" : "#ffffff";
        pen.textAlign = "center";
        pen.font = "11px system-ui, sans-serif";
        pen.fillText(amount(value), x + cell / 2, y + cell / 2);
        pen.font = "12px system-ui, sans-serif";
      }
    }
    pen.fillStyle = theme("soft");
    if (named && (cell >= 13 || number <= 24)) names.forEach((name, i) => {
      pen.textAlign = "right";
      pen.fillText(cut(name, 20), label - 6, head + (i + 0.5) * cell);
      pen.save();
      pen.translate(label + (i + 0.5) * cell, head - 6);
      if (slanted) pen.rotate(-Math.PI / 4);
      pen.textAlign = slanted ? "left" : "center";
      pen.fillText(cut(name, slanted ? 18 : 9), 0, 0);
      pen.restore();
    });
  }
  canvas.addEventListener("mousemove", (event) => {
    const box = canvas.getBoundingClientRect(), column = Math.floor((event.clientX - box.left - label) / cell), row = Math.floor((event.clientY - box.top - head) / cell);
    const inside = row >= 0 && column >= 0 && row < number && column < number;
    showHover(inside ? hint(row, column, cells.get(row * number + column) || 0) : "", event.clientX, event.clientY);
  });
  canvas.addEventListener("mouseleave", hideHover);
  legend.replaceChildren(rampLegend([amount(low === Infinity ? 0 : low), amount(top)]), swatch(theme("empty"), "nothing"), words(title));
  draw();
  return draw;
}
function trafficMatrix() {
  const t = data.traffic, number = t.nodes.length, cells = new Map(), parts = new Map();
  for (const [from, to, kind, bytes] of t.flows) {
    const key = from * number + to;
    cells.set(key, (cells.get(key) || 0) + bytes);
    parts.set(key, [...(parts.get(key) || []), t.kinds[kind] + " " + amount(bytes)]);
  }
  return drawMatrix(document.getElementById("matrix"), document.getElementById("matrixlegend"), t.nodes, cells,
    (row, column, value) => t.nodes[row] + " → " + t.nodes[column] + ": " + amount(value) + " per step (predicted)" + (value ? "\n" + parts.get(row * number + column).join(", ") : ""),
    "logarithmic scale");
}
function chipMatrix() {
  const canvas = document.getElementById("chips"), chips = data.traffic.chips, cells = new Map();
  if (!canvas) return null;
  chips.forEach((row, i) => row.forEach((value, j) => { if (value > 0) cells.set(i * chips.length + j, value); }));
  return drawMatrix(canvas, document.getElementById("chipslegend"), chips.map((_, i) => "IPU " + i), cells,
    (row, column, value) => (row === column ? "on IPU " + row : "IPU " + row + " → IPU " + column) + ": " + amount(value) + " per step (predicted)", "logarithmic scale");
}
