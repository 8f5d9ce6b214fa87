// Decodes the numbers embedded in the page: run lengths, indices into a list of values, or little-endian numbers as base64.
const data = JSON.parse(document.getElementById("data").textContent);
function bytesOf(text) {
  const raw = atob(text), out = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) out[i] = raw.charCodeAt(i);
  return out;
}
function unpack(coded) {
  if (coded.runs) {
    const out = [];
    for (let i = 0; i < coded.runs.length; i += 2) for (let n = 0; n < coded.runs[i + 1]; n++) out.push(coded.runs[i]);
    return out;
  }
  if (coded.each) {
    const each = unpack(coded.each), times = unpack(coded.times), out = [];
    for (let i = 0; i < each.length; i++) for (let n = 0; n < times[i]; n++) out.push(each[i]);
    return out;
  }
  if (coded.of) return Array.from(bytesOf(coded.u8), (place) => coded.of[place]);
  if (coded.u8) return bytesOf(coded.u8);
  const view = new DataView(bytesOf(coded.i32 || coded.f64).buffer), size = coded.i32 ? 4 : 8, out = [];
  for (let at = 0; at < view.byteLength; at += size) out.push(coded.i32 ? view.getInt32(at, true) : view.getFloat64(at, true));
  return out;
}
function unpackPlaces(coded) {
  const out = [];
  let place = 0;
  for (const gap of bytesOf(coded.gaps)) {
    place += gap;
    if (gap < 255) out.push(place);
  }
  return out;
}
function sums(values) {
  let total = 0;
  return values.map((v) => (total += v));
}
function largest(values) {
  let top = 0;
  for (const v of values) if (v > top) top = v;
  return top;
}
