// The map of tiles on a canvas: views, zoom, one highlighted layer, one marked tile.
function tileNumbers(coded) {
  const m = { ...coded, owner: unpack(coded.owner), neurons: unpack(coded.neurons), replica: unpack(coded.replica) };
  m.members = coded.members.map((gaps) => sums(Array.from(unpack(gaps))));
  for (const part of ["memory", "cycles", "emulated"]) m[part] = Object.fromEntries(Object.entries(coded[part]).map(([name, c]) => [name, unpack(c)]));
  const none = new Array(m.tiles).fill(0);
  m.bytes = Object.values(m.memory).reduce((sum, values) => sum.map((v, t) => v + values[t]), none);
  m.views = { layer: { title: "layer" }, memory: { title: "memory", values: m.bytes, top: m.limit, unit: "bytes", source: "predicted", limit: true } };
  for (const kind of ["compute", "exchange"]) m.views[kind] = { title: kind, values: m.cycles[kind] || none, unit: "cycles per step", source: "predicted" };
  if (m.emulated.memory) m.views["emulated memory"] = { title: "memory, emulated", values: m.emulated.memory, top: m.limit, unit: "bytes", source: "emulated", limit: true };
  if (m.emulated.compute) m.views["emulated compute"] = { title: "compute, emulated", values: m.emulated.compute, unit: "cycles per step", source: "emulated" };
  if (m.chips > 1) m.views.IPU = { title: "IPU" };
  if (m.groups.some((g) => g.length > 1)) m.views["batch group"] = { title: "batch group" };
  for (const view of Object.values(m.views)) if (view.values && !view.top) view.top = Math.max(1, largest(view.values));
  return m;
}
function describeTile(m, tile) {
  const who = m.owner[tile];
  let text = "Tile " + count(tile) + (m.chips > 1 ? " on IPU " + Math.floor(tile / m.per_chip) : "") + ": ";
  if (who < 0) text += who === -1 ? "free" : "relays only";
  else {
    const sharing = m.members.map((tiles, layer) => (layer !== who && tiles.includes(tile) ? m.layers[layer] : null)).filter((name) => name !== null);
    text += [m.layers[who], ...sharing.slice(0, 4)].join(", ") + (sharing.length > 4 ? " …" : "") + ", " + many(m.neurons[tile], "neuron");
    if (m.groups[who].length > 1) {
      const [first, samples] = m.groups[who][m.replica[tile]];
      text += ", samples " + first + " – " + (first + samples - 1) + " (batch group " + (m.replica[tile] + 1) + " of " + m.groups[who].length + ")";
    }
  }
  const parts = Object.keys(m.memory).filter((name) => m.memory[name][tile] > 0).map((name) => name + " " + count(m.memory[name][tile]));
  text += ". " + count(m.bytes[tile]) + " of " + count(m.limit) + " bytes (" + (parts.join(", ") || "nothing") + ")";
  for (const kind in m.cycles) text += ", " + kind + " " + count(m.cycles[kind][tile]);
  text += (Object.keys(m.cycles).length ? " cycles per step" : "") + ", predicted.";
  if (m.emulated.memory) text += " Emulated: " + count(m.emulated.memory[tile]) + " bytes" + (m.emulated.compute ? ", compute " + count(m.emulated.compute[tile]) + " cycles" : "") + ".";
  return text;
}
function tileMap(canvas, m, changed) {
  const across = Math.min(m.across, m.chips), down = Math.ceil(m.chips / m.across), room = m.chips > 1 ? 3 : 0;
  const wide = across * (m.columns + 2) - 2, high = down * (m.rows + 2 + room) - 2;
  const self = { view: "layer", chosen: null, mark: null, zoom: 1, x: 0, y: 0, tops: {} };
  let base = 1, shown = [1, 1], lit = null, cursor = 0, drag = null;

  function place(tile) {
    const chip = Math.floor(tile / m.per_chip), n = tile % m.per_chip;
    return [(chip % m.across) * (m.columns + 2) + (n % m.columns), Math.floor(chip / m.across) * (m.rows + 2 + room) + room + Math.floor(n / m.columns)];
  }
  function at(event) {
    const box = canvas.getBoundingClientRect(), scale = base * self.zoom;
    const x = Math.floor((event.clientX - box.left) / scale + self.x), y = Math.floor((event.clientY - box.top) / scale + self.y);
    const column = x % (m.columns + 2), row = (y % (m.rows + 2 + room)) - room;
    const chip = Math.floor(y / (m.rows + 2 + room)) * m.across + Math.floor(x / (m.columns + 2)), tile = chip * m.per_chip + row * m.columns + column;
    const inside = x >= 0 && y >= 0 && column < m.columns && row >= 0 && row < m.rows && row * m.columns + column < m.per_chip && x < wide && chip < m.chips;
    return inside ? tile : null;
  }
  function colour(tile, ink) {
    const who = m.owner[tile];
    if (lit && !lit[tile]) return who === -1 ? ink.empty : ink.faint;
    const view = m.views[self.view];
    if (self.view === "layer") {
      if (lit) return blend(m.colours[self.chosen], ink.paper, 0.4 + 0.6 * Math.min(1, m.bytes[tile] / m.limit));
      return who === -1 ? ink.empty : blend(who === -2 ? data.relay : m.colours[who], ink.paper, 0.35 + 0.65 * Math.min(1, m.bytes[tile] / m.limit));
    }
    if (self.view === "IPU") return who === -1 ? ink.empty : ink.eight[Math.floor(tile / m.per_chip) % 8];
    if (self.view === "batch group") return who === -1 ? ink.empty : m.replica[tile] < 0 ? data.relay : ink.eight[m.replica[tile] % 8];
    return view.values[tile] === 0 ? ink.empty : ramp(view.values[tile] / (self.tops[self.view] || view.top));
  }
  function draw() {
    const box = canvas.parentElement.clientWidth;
    if (!box) return;
    base = Math.min(box / wide, 24, (m.chips > 1 ? 960 : 640) / high);
    shown = [Math.floor(wide * base), Math.floor(high * base)];
    const pen = sharp(canvas, shown[0], shown[1]), dense = window.devicePixelRatio || 1, scale = base * self.zoom;
    self.x = Math.max(0, Math.min(self.x, wide - shown[0] / scale));
    self.y = Math.max(0, Math.min(self.y, high - shown[1] / scale));
    const ink = { empty: theme("empty"), faint: theme("faint"), paper: theme("paper"), soft: theme("soft"), ink: theme("ink"), eight: data.eight };
    const gap = scale * dense >= 4 ? Math.max(1, Math.round(scale * dense / 10)) : 0;
    pen.setTransform(1, 0, 0, 1, 0, 0);
    const unit = scale * dense, edge = (v) => Math.round(v * unit);
    for (let tile = 0; tile < m.tiles; tile++) {
      const [x, y] = place(tile), left = edge(x - self.x), top = edge(y - self.y);
      if (left > canvas.width || top > canvas.height || left + unit < 0 || top + unit < 0) continue;
      pen.fillStyle = colour(tile, ink);
      pen.fillRect(left, top, Math.max(1, edge(x + 1 - self.x) - left - gap), Math.max(1, edge(y + 1 - self.y) - top - gap));
    }
    if (m.chips > 1) {
      pen.fillStyle = ink.soft;
      pen.font = Math.max(9 * dense, Math.min(13 * dense, 2.4 * unit)) + "px system-ui, sans-serif";
      for (let chip = 0; chip < m.chips; chip++) {
        const [x, y] = place(chip * m.per_chip);
        pen.fillText((m.columns * unit > 60 * dense ? "IPU " : "") + chip, edge(x - self.x), edge(y - self.y) - 3 * dense);
      }
    }
    for (const [tile, fill] of [[self.mark, "#D55E00"], [document.activeElement === canvas ? cursor : null, ink.ink]]) {
      if (tile === null) continue;
      const [x, y] = place(tile);
      pen.strokeStyle = fill;
      pen.lineWidth = 2 * dense;
      pen.strokeRect(edge(x - self.x) - 2 * dense, edge(y - self.y) - 2 * dense, unit + 4 * dense - gap, unit + 4 * dense - gap);
    }
    if (changed) changed(self);
  }
  function zoomTo(zoom, x, y) {
    const before = base * self.zoom;
    zoom = Math.max(1, Math.min(zoom, 40));
    self.x += x / before - x / (base * zoom);
    self.y += y / before - y / (base * zoom);
    self.zoom = zoom;
    canvas.style.cursor = zoom > 1 ? "grab" : "";
    draw();
  }
  self.draw = draw;
  self.at = at;
  self.numbers = m;
  self.choose = (layer) => {
    self.chosen = layer;
    lit = null;
    if (layer !== null && m.members[layer]) {
      lit = new Uint8Array(m.tiles);
      for (const tile of m.members[layer]) lit[tile] = 1;
    }
    draw();
  };
  self.show = (view) => { self.view = m.views[view] ? view : "layer"; draw(); };
  self.markTile = (tile) => { self.mark = self.mark === tile ? null : tile; draw(); };
  self.step = (how) => zoomTo(how === "fit" ? 1 : how === "in" ? self.zoom * 1.6 : self.zoom / 1.6, shown[0] / 2, shown[1] / 2);
  self.point = null;
  canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    const box = canvas.getBoundingClientRect();
    zoomTo(self.zoom * (event.deltaY < 0 ? 1.25 : 0.8), event.clientX - box.left, event.clientY - box.top);
  }, { passive: false });
  canvas.addEventListener("dblclick", (event) => {
    const box = canvas.getBoundingClientRect();
    zoomTo(self.zoom > 1 ? 1 : Math.max(2.5, across), event.clientX - box.left, event.clientY - box.top);
  });
  canvas.addEventListener("pointerdown", (event) => { drag = { x: event.clientX, y: event.clientY, left: self.x, top: self.y, moved: false }; });
  window.addEventListener("pointerup", () => { drag = null; });
  canvas.addEventListener("pointermove", (event) => {
    if (drag && self.zoom > 1 && Math.hypot(event.clientX - drag.x, event.clientY - drag.y) > 3) {
      drag.moved = self.moved = true;
      self.x = drag.left - (event.clientX - drag.x) / (base * self.zoom);
      self.y = drag.top - (event.clientY - drag.y) / (base * self.zoom);
      draw();
      return;
    }
    const tile = at(event);
    showHover(tile === null ? "" : describeTile(m, tile), event.clientX, event.clientY);
    if (tile !== null && self.point) self.point(tile);
  });
  canvas.addEventListener("pointerleave", hideHover);
  canvas.addEventListener("click", (event) => {
    if (self.moved) { self.moved = false; return; }
    const tile = at(event);
    if (tile !== null && self.pick) { cursor = tile; self.pick(m.owner[tile]); }
  });
  canvas.addEventListener("keydown", (event) => {
    const move = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -m.columns, ArrowDown: m.columns }[event.key];
    if (move !== undefined) {
      event.preventDefault();
      cursor = Math.max(0, Math.min(m.tiles - 1, cursor + move));
      if (self.point) self.point(cursor);
      draw();
    } else if ((event.key === "Enter" || event.key === " ") && self.pick) {
      event.preventDefault();
      self.pick(m.owner[cursor]);
    } else if (event.key === "+" || event.key === "-") self.step(event.key === "+" ? "in" : "out");
  });
  canvas.addEventListener("focus", draw);
  canvas.addEventListener("blur", draw);
  return self;
}
function mapLegend(place, map) {
  const m = map.numbers, view = m.views[map.view];
  place.replaceChildren();
  if (map.view === "layer") {
    m.layers.slice(0, 12).forEach((name, i) => place.append(swatch(m.colours[i], name)));
    if (m.layers.length > 12) place.append(words("and " + (m.layers.length - 12) + " more"));
    place.append(swatch(data.relay, "relays"), swatch(theme("empty"), "free"), words("stronger: more memory"));
  } else if (map.view === "IPU") {
    place.append(words("colours repeat after eight IPUs"), swatch(theme("empty"), "free"));
  } else if (map.view === "batch group") {
    place.append(words("each batch group of a layer contains all of its neurons, for its own samples"), swatch(data.relay, "relays"), swatch(theme("empty"), "free"));
  } else {
    place.append(rampLegend(["0", count(map.tops[map.view] || view.top) + " " + view.unit + (view.limit ? " (limit)" : "")]), swatch(theme("empty"), "none"), words(view.source));
  }
}
function viewButtons(place, names, titles, chosen) {
  for (const name of names) {
    const button = document.createElement("button");
    button.type = "button";
    button.dataset.view = name;
    button.textContent = titles[name].title;
    button.setAttribute("aria-pressed", String(name === "layer"));
    button.addEventListener("click", () => {
      place.querySelectorAll("button").forEach((other) => other.setAttribute("aria-pressed", String(other === button)));
      chosen(name);
    });
    place.append(button);
  }
}
