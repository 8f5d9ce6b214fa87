// Sorts tables when a heading is clicked; opens folded parts before the page is printed.
window.addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((folded) => { folded.open = true; }));
function valueOf(cell) {
  const text = cell.dataset.value || cell.textContent.trim(), number = Number(text.replace(/[, %]/g, ""));
  return text !== "" && !Number.isNaN(number) ? number : text;
}
document.querySelectorAll("table.sortable").forEach((table) => table.querySelectorAll("th").forEach((head, column) => {
  head.tabIndex = 0;
  const sort = () => {
    const down = head.getAttribute("aria-sort") !== "descending", body = table.tBodies[0];
    table.querySelectorAll("th").forEach((other) => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const rows = Array.from(body.rows).sort((a, b) => {
      const x = valueOf(a.cells[column]), y = valueOf(b.cells[column]);
      const order = typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y));
      return down ? -order : order;
    });
    body.append(...rows);
  };
  head.addEventListener("click", sort);
  head.addEventListener("keydown", (event) => { if (event.key === "Enter") sort(); });
}));
