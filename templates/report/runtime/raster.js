// Spike rasters and activity over time, a pair of canvases per layer; if there are many, they are drawn when they become visible.
const rastersShown = 24;
function drawRaster(canvas, r) {
  const wide = canvas.clientWidth || 600, high = Math.max(40, Math.min(128, r.rows * 2)), pen = sharp(canvas, wide, high);
  canvas.style.width = "100%";
  const places = unpackPlaces(r.places), counts = unpack(r.counts), ground = theme("empty");
  const w = wide / r.columns, h = high / r.rows;
  for (let i = 0; i < places.length; i++) {
    const column = places[i] % r.columns, row = Math.floor(places[i] / r.columns);
    pen.fillStyle = blend(r.layer < 0 ? data.relay : r.colour, ground, 0.45 + 0.55 * Math.min(1, counts[i] / Math.min(r.full, 4)));
    pen.fillRect(column * w, high - (row + 1) * h, Math.max(1, w - (w > 4 ? 1 : 0)), Math.max(1, h - (h > 4 ? 1 : 0)));
  }
}
function drawActivity(canvas, r) {
  const wide = canvas.clientWidth || 600, high = 36, pen = sharp(canvas, wide, high), top = 1.1 * Math.max(largest(r.over_time), r.assumed || 0, 1e-6);
  canvas.style.width = "100%";
  pen.fillStyle = blend(r.layer < 0 ? data.relay : r.colour, theme("empty"), 0.6);
  r.over_time.forEach((value, i) => {
    const left = i / r.over_time.length * wide;
    pen.fillRect(left, high - value / top * high, Math.max(1, wide / r.over_time.length - 0.3), high);
  });
  if (r.assumed !== null) {
    pen.strokeStyle = theme("ink");
    pen.setLineDash([5, 4]);
    pen.beginPath();
    pen.moveTo(0, high - r.assumed / top * high);
    pen.lineTo(wide, high - r.assumed / top * high);
    pen.stroke();
  }
}
function rasters(all) {
  const place = document.getElementById("rasters"), drawn = [];
  if (!place) return () => {};
  const shown = all ? data.rasters : data.rasters.slice(0, rastersShown);
  place.replaceChildren();
  const seen = new IntersectionObserver((entries) => entries.filter((e) => e.isIntersecting).forEach((e) => { seen.unobserve(e.target); e.target.redraw(); drawn.push(e.target.redraw); }), { rootMargin: "300px" });
  for (const r of shown) {
    const box = document.createElement("div"), side = document.createElement("div"), name = document.createElement("b"), pictures = document.createElement("div");
    const raster = document.createElement("canvas"), curve = document.createElement("canvas");
    box.className = "raster";
    name.textContent = cut(r.label, 40);
    side.append(name, document.createElement("br"), words(many(r.width, "neuron") + ", " + many(r.steps, "step")));
    side.lastChild.className = "soft";
    raster.setAttribute("role", "img");
    raster.setAttribute("aria-label", "Spikes of " + r.label + ": " + many(r.width, "neuron") + " over " + many(r.steps, "step"));
    curve.setAttribute("role", "img");
    curve.setAttribute("aria-label", "Spikes of " + r.label + " per neuron and step, over time: at most " + largest(r.over_time).toPrecision(2));
    raster.style.height = Math.max(40, Math.min(128, r.rows * 2)) + "px";
    curve.style.height = "36px";
    curve.style.marginTop = "3px";
    pictures.append(raster, curve);
    box.append(side, pictures);
    place.append(box);
    box.redraw = () => { drawRaster(raster, r); drawActivity(curve, r); };
    raster.addEventListener("mousemove", (event) => {
      const b = raster.getBoundingClientRect(), step = Math.floor((event.clientX - b.left) / b.width * r.steps), neuron = Math.floor((b.bottom - event.clientY) / b.height * r.width);
      showHover(r.label + ": neuron " + count(neuron) + ", step " + count(step), event.clientX, event.clientY);
    });
    curve.addEventListener("mousemove", (event) => {
      const b = curve.getBoundingClientRect(), i = Math.min(r.over_time.length - 1, Math.floor((event.clientX - b.left) / b.width * r.over_time.length));
      showHover(r.label + ": " + (100 * r.over_time[i]).toPrecision(3) + " % measured" + (r.assumed === null ? "" : ", " + (100 * r.assumed).toPrecision(3) + " % assumed by the plan"), event.clientX, event.clientY);
    });
    [raster, curve].forEach((c) => c.addEventListener("mouseleave", hideHover));
    if (all) seen.observe(box); else drawn.push(box.redraw);
  }
  if (shown.length < data.rasters.length) {
    const more = document.createElement("button");
    more.type = "button";
    more.textContent = "show all " + data.rasters.length + " layers";
    more.addEventListener("click", () => rasters(true));
    const tabs = document.createElement("div");
    tabs.className = "tabs";
    tabs.append(more);
    place.append(tabs);
  }
  const draw = () => drawn.forEach((redraw) => redraw());
  draw();
  return draw;
}
