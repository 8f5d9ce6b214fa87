// Colours of the theme, colour ramps, and formatting of numbers.
const darkTheme = window.matchMedia("(prefers-color-scheme: dark)");
function theme(name) { return getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim(); }
function channels(colour) { return [1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16)); }
function blend(colour, ground, strength) {
  const b = channels(ground);
  return "rgb(" + channels(colour).map((c, i) => Math.round(b[i] + (c - b[i]) * strength)).join(",") + ")";
}
function ramp(x) {
  const start = darkTheme.matches ? 0.2 : 0; // the darkest colours would not stand out from a dark page
  const at = (start + (1 - start) * Math.max(0, Math.min(1, x))) * (data.ramp.length - 1), i = Math.min(Math.floor(at), data.ramp.length - 2), f = at - i;
  const a = channels(data.ramp[i]), b = channels(data.ramp[i + 1]);
  return "rgb(" + a.map((c, n) => Math.round(c + (b[n] - c) * f)).join(",") + ")";
}
function count(value) { return Math.round(value).toLocaleString("en"); }
function amount(bytes) {
  for (const [unit, scale] of [["TiB", 2 ** 40], ["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10]]) if (bytes >= scale) return Number((bytes / scale).toPrecision(3)) + " " + unit;
  return bytes + " bytes";
}
function cut(text, most) { return text.length > most ? text.slice(0, most - 1) + "…" : text; }
function many(number, what) { return count(number) + " " + what + (number === 1 ? "" : "s"); }
function words(text) {
  const s = document.createElement("span");
  s.textContent = text;
  return s;
}
function swatch(fill, text) {
  const s = document.createElement("span"), d = document.createElement("span");
  d.className = "dot";
  d.style.background = fill;
  s.append(d, document.createTextNode(cut(text, 24)));
  return s;
}
function rampLegend(texts) {
  const s = document.createElement("span"), bar = document.createElement("span");
  bar.className = "ramp";
  bar.style.background = "linear-gradient(to right, " + [0, 0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1].map(ramp).join(", ") + ")";
  s.append(document.createTextNode(texts[0]), bar, document.createTextNode(texts[1]));
  return s;
}
function sharp(canvas, width, height) {
  const dense = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * dense);
  canvas.height = Math.round(height * dense);
  canvas.style.width = width + "px";
  canvas.style.height = height + "px";
  const pen = canvas.getContext("2d");
  pen.setTransform(dense, 0, 0, dense, 0, 0);
  return pen;
}
