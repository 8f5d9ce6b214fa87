// Zoom and pan of the dataflow graph, by its view box.
const flow = document.getElementById("flow");
const flowSize = [Number(flow.dataset.width), Number(flow.dataset.height)];
let flowBox = [0, 0, flowSize[0], flowSize[1]], flowDrag = null, flowMoved = false;
function setFlow(box) {
  const wide = Math.max(120, Math.min(box[2], flowSize[0])), ratio = flowSize[1] / flowSize[0];
  flowBox = [Math.max(0, Math.min(box[0], flowSize[0] - wide)), Math.max(0, Math.min(box[1], flowSize[1] - wide * ratio)), wide, wide * ratio];
  flow.setAttribute("viewBox", flowBox.join(" "));
}
function zoomFlow(factor, fx, fy) {
  const wide = Math.max(120, Math.min(flowBox[2] * factor, flowSize[0])), high = wide * flowSize[1] / flowSize[0];
  setFlow([flowBox[0] + (flowBox[2] - wide) * fx, flowBox[1] + (flowBox[3] - high) * fy, wide, high]);
}
function fitFlow() {
  const room = flow.parentElement.clientWidth;
  flow.style.height = Math.min(560, Math.max(130, flowSize[1] / flowSize[0] * room), flowSize[1] * 1.15) + "px";
  setFlow([0, 0, flowSize[0], flowSize[1]]);
}
document.querySelectorAll("[data-flow]").forEach((button) => button.addEventListener("click", () => {
  if (button.dataset.flow === "fit") fitFlow(); else zoomFlow(button.dataset.flow === "in" ? 0.7 : 1.43, 0.5, 0.5);
}));
flow.addEventListener("wheel", (event) => {
  if (!event.ctrlKey && !event.metaKey) return;
  event.preventDefault();
  const box = flow.getBoundingClientRect();
  zoomFlow(event.deltaY < 0 ? 0.8 : 1.25, (event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height);
}, { passive: false });
flow.addEventListener("pointerdown", (event) => { flowDrag = { x: event.clientX, y: event.clientY, box: flowBox.slice() }; flowMoved = false; });
window.addEventListener("pointermove", (event) => {
  if (!flowDrag || Math.hypot(event.clientX - flowDrag.x, event.clientY - flowDrag.y) < 4) return;
  flowMoved = true;
  const scale = flowDrag.box[2] / flow.getBoundingClientRect().width;
  setFlow([flowDrag.box[0] - (event.clientX - flowDrag.x) * scale, flowDrag.box[1] - (event.clientY - flowDrag.y) * scale, flowDrag.box[2], flowDrag.box[3]]);
});
window.addEventListener("pointerup", () => { flowDrag = null; });
flow.addEventListener("keydown", (event) => {
  const step = { ArrowLeft: [-0.1, 0], ArrowRight: [0.1, 0], ArrowUp: [0, -0.1], ArrowDown: [0, 0.1] }[event.key];
  if (step && event.target === flow) { event.preventDefault(); setFlow([flowBox[0] + step[0] * flowBox[2], flowBox[1] + step[1] * flowBox[3], flowBox[2], flowBox[3]]); }
  if (event.key === "+" || event.key === "-") zoomFlow(event.key === "+" ? 0.7 : 1.43, 0.5, 0.5);
});
