"use strict";
// Sorts tables by the column whose heading is clicked, and filters them by a text.
(() => {
  const cell = (row, column) => row.cells[column];
  const key = (row, column) => cell(row, column).dataset.v ?? cell(row, column).textContent;

  function compare(left, right) {
    const [a, b] = [Number(left), Number(right)];
    if (left !== "" && right !== "" && !Number.isNaN(a) && !Number.isNaN(b)) return a - b;
    return left.localeCompare(right, "en", { numeric: true });
  }

  function sort(heading) {
    const table = heading.closest("table");
    const column = heading.cellIndex;
    const first = heading.dataset.first ?? "descending";
    const second = first === "descending" ? "ascending" : "descending";
    const direction = heading.getAttribute("aria-sort") === first ? second : first;
    for (const cell of table.tHead.rows[0].cells) cell.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", direction);
    const sign = direction === "ascending" ? 1 : -1;
    const rows = Array.from(table.tBodies[0].rows, (row) => [key(row, column), row]);
    rows.sort((a, b) => sign * compare(a[0], b[0]));
    table.tBodies[0].append(...rows.map(([, row]) => row));
  }

  function filter(input) {
    const table = document.getElementById(input.dataset.table);
    const wanted = input.value.toLowerCase();
    let shown = 0;
    for (const row of table.tBodies[0].rows) {
      const texts = Array.from(row.cells).filter((cell) => cell.classList.contains("text"));
      row.hidden = !texts.some((cell) => cell.textContent.toLowerCase().includes(wanted));
      shown += row.hidden ? 0 : 1;
    }
    const total = table.tBodies[0].rows.length;
    input.closest(".filter").querySelector("output").textContent =
      shown === total ? `${total} lines` : `${shown} of ${total} lines`;
  }

  document.body.classList.add("scripted");
  for (const button of document.querySelectorAll("th button")) {
    button.addEventListener("click", () => sort(button.closest("th")));
  }
  for (const input of document.querySelectorAll(".filter input")) {
    input.addEventListener("input", () => filter(input));
    // A browser may restore the text of the input when it reloads the page.
    filter(input);
  }
})();
