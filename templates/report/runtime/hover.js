// The tooltip of elements with a data-tip attribute, and of canvases.
const hover = document.getElementById("hover");
function showHover(text, x, y) {
  if (!text) return hideHover();
  hover.textContent = text;
  hover.hidden = false;
  const box = hover.getBoundingClientRect();
  hover.style.left = Math.max(4, Math.min(x + 14, innerWidth - box.width - 8)) + "px";
  hover.style.top = (y + 18 + box.height > innerHeight ? Math.max(4, y - box.height - 10) : y + 18) + "px";
}
function hideHover() { hover.hidden = true; }
document.addEventListener("mousemove", (event) => {
  if (event.target.tagName === "CANVAS") return;
  const owner = event.target.closest ? event.target.closest("[data-tip]") : null;
  if (owner) showHover(owner.dataset.tip, event.clientX, event.clientY); else hideHover();
});
document.addEventListener("focusin", (event) => {
  const owner = event.target.closest("[data-tip]");
  if (owner && event.target.matches(":focus-visible")) {
    const box = owner.getBoundingClientRect();
    showHover(owner.dataset.tip, box.left, box.bottom - 10);
  }
});
document.addEventListener("focusout", hideHover);
document.addEventListener("mouseleave", hideHover);
document.addEventListener("keydown", (event) => { if (event.key === "Escape") hideHover(); });
