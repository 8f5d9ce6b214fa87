// Connects the parts of the page: one selected layer everywhere, one view of the map.
const numbers = data.maps.map(tileNumbers), tip = document.getElementById("tip"), curve = document.getElementById("curve");
const map = tileMap(document.getElementById("map"), numbers[0], () => {
  mapLegend(document.getElementById("maplegend"), map);
});
function redrawMap() {
  map.draw();
  drawCurve(curve, document.getElementById("curvelegend"), map);
}
map.point = (tile) => { tip.textContent = describeTile(numbers[0], tile); };
map.pick = (owner) => { if (owner >= 0) choose(owner); else if (map.chosen !== null) choose(map.chosen); };
viewButtons(document.getElementById("views"), Object.keys(numbers[0].views), numbers[0].views, (view) => { map.show(view); redrawMap(); });
document.querySelectorAll("[data-zoom]").forEach((b) => b.addEventListener("click", () => map.step(b.dataset.zoom)));

function choose(layer) {
  const chosen = map.chosen === layer ? null : layer, m = numbers[0];
  document.querySelectorAll("[data-layer]").forEach((e) => e.classList.toggle("on", chosen !== null && Number(e.dataset.layer) === chosen));
  document.querySelectorAll(".arrow").forEach((e) => e.classList.toggle("on", chosen !== null && (Number(e.dataset.from) === chosen || Number(e.dataset.to) === chosen)));
  map.choose(chosen);
  if (chosen === null) { tip.textContent = "Point at a tile."; return; }
  const tiles = m.members[chosen], most = (values) => tiles.reduce((a, b) => (values[b] > values[a] ? b : a), tiles[0]), full = most(m.bytes);
  tip.textContent = m.layers[chosen] + ": " + many(tiles.length, "tile") + (m.groups[chosen].length > 1 ? " in " + m.groups[chosen].length + " batch groups" : "") + "; fullest tile " + count(full) +
    " with " + count(m.bytes[full]) + " bytes" + (m.cycles.compute ? ", busiest tile " + count(most(m.cycles.compute)) + " with " + count(m.cycles.compute[most(m.cycles.compute)]) + " cycles per step" : "") + " (predicted).";
}
document.querySelectorAll("[data-layer]").forEach((e) => {
  e.addEventListener("click", () => { if (!flowMoved) choose(Number(e.dataset.layer)); });
  e.addEventListener("keydown", (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); choose(Number(e.dataset.layer)); } });
});
document.querySelectorAll("[data-mark]").forEach((e) => e.addEventListener("click", () => {
  map.markTile(Number(e.dataset.mark));
  tip.textContent = describeTile(numbers[0], Number(e.dataset.mark));
}));

const compared = Array.from(document.querySelectorAll("canvas.compared")).map((canvas, i) => {
  const legend = canvas.closest("div").parentElement.querySelector(".legend");
  const one = tileMap(canvas, numbers[i], () => { mapLegend(legend, one); });
  return one;
});
if (compared.length) {
  const shared = Object.keys(numbers[0].views).filter((view) => numbers[1].views[view]);
  for (const view of shared) if (numbers[0].views[view].values) {
    const top = Math.max(numbers[0].views[view].top, numbers[1].views[view].top);
    compared.forEach((one) => { one.tops[view] = top; });
  }
  viewButtons(document.getElementById("comparedviews"), shared, numbers[0].views, (view) => compared.forEach((one) => one.show(view)));
}

const redraws = [trafficMatrix(), chipMatrix(), rasters(false)].filter((draw) => draw);
function redraw() {
  redrawMap();
  compared.forEach((one) => one.draw());
  redraws.forEach((draw) => draw());
}
let waiting = 0;
window.addEventListener("resize", () => { cancelAnimationFrame(waiting); waiting = requestAnimationFrame(() => { fitFlow(); redraw(); }); });
darkTheme.addEventListener("change", redraw);
fitFlow();
redraw();
