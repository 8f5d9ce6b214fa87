// A curve of all tiles sorted by the quantity that the map shows, to show how evenly it is distributed.
function drawCurve(canvas, note, map) {
  const m = map.numbers, view = m.views[map.view].values ? m.views[map.view] : m.views.memory, sorted = Float64Array.from(view.values).sort().reverse();
  const wide = canvas.clientWidth || 400, high = 64, pen = sharp(canvas, wide, high), top = Math.max(view.top, sorted[0] || 1);
  canvas.style.width = "100%";
  pen.fillStyle = theme("empty");
  pen.fillRect(0, 0, wide, high);
  for (let x = 0; x < wide; x++) {
    const value = sorted[Math.min(m.tiles - 1, Math.floor(x / wide * m.tiles))];
    if (value > 0) {
      pen.fillStyle = ramp(value / view.top);
      pen.fillRect(x, high - Math.max(1, value / top * high), 1, high);
    }
  }
  let sum = 0, used = 0;
  for (const value of sorted) { sum += value; used += value > 0; }
  const name = view === m.views.memory ? "memory" : view.title;
  note.textContent = "All " + count(m.tiles) + " tiles, sorted by " + name + ": most " + count(sorted[0]) + ", mean of all tiles " + count(sum / m.tiles) + " " + view.unit +
    ", " + count(used) + " tiles above 0 (" + view.source + ")";
}
