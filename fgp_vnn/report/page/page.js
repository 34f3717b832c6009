"use strict";

// Theme: the system's setting, until the reader chooses.
(() => {
  const button = document.getElementById("theme");
  let choice = "auto";
  try { choice = localStorage.getItem("theme") || "auto"; } catch { /* a local file may not store */ }
  const show = () => {
    document.documentElement.dataset.theme = choice;
    button.textContent = `Theme: ${choice}`;
  };
  button.addEventListener("click", () => {
    choice = { auto: "light", light: "dark", dark: "auto" }[choice] || "auto";
    try { localStorage.setItem("theme", choice); } catch { /* as above */ }
    show();
  });
  show();
})();

// The table: filter and sort. A page has the filters that suit it.
(() => {
  const table = document.getElementById("table");
  const body = table.tBodies[0];
  const rows = Array.from(body.rows);
  const search = document.getElementById("search");
  const result = document.getElementById("result");
  const category = document.getElementById("category");
  const conflicts = document.getElementById("conflicts-only");
  const count = document.getElementById("count");
  const texts = rows.map((row) => row.textContent.toLowerCase());

  const filter = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    rows.forEach((row, index) => {
      const match = words.every((word) => texts[index].includes(word))
        && (!result?.value || row.dataset.results.split(" ").includes(result.value))
        && (!category?.value || row.dataset.category === category.value)
        && (!conflicts?.checked || row.classList.contains("conflict"));
      row.hidden = !match;
      shown += match;
    });
    count.textContent = `${shown} of ${rows.length} ${table.dataset.unit}`;
  };
  for (const control of [search, result, category, conflicts].filter(Boolean)) {
    control.addEventListener("input", filter);
    control.addEventListener("change", filter);
  }
  search.addEventListener("keydown", (event) => {
    if (event.key === "Escape") { search.value = ""; filter(); }
  });

  const value = (row, column) => {
    const cell = row.cells[column];
    const number = cell.dataset.value;
    return number === undefined ? cell.textContent.trim() : parseFloat(number);
  };
  const compare = (a, b) => (typeof a === "number" && typeof b === "number")
    ? a - b : String(a).localeCompare(String(b), undefined, { numeric: true });
  const sort = (column, direction) => {
    const sign = direction === "descending" ? -1 : 1;
    const sorted = rows.slice().sort((a, b) => sign * compare(value(a, column), value(b, column)));
    body.append(...sorted);
    for (const header of table.tHead.rows[0].cells) header.removeAttribute("aria-sort");
    table.tHead.rows[0].cells[column].setAttribute("aria-sort", direction);
  };
  Array.from(table.tHead.rows[0].cells).forEach((header, column) => {
    header.querySelector("button").addEventListener("click", () => {
      sort(column, header.getAttribute("aria-sort") === "ascending" ? "descending" : "ascending");
    });
  });
  const order = document.getElementById("order");
  order.addEventListener("change", () => {
    const [column, direction] = order.value.split(" ");
    sort(Number(column), direction);
  });
  filter();
})();

// A slash goes to the search field, as in many programs.
document.addEventListener("keydown", (event) => {
  const typing = ["INPUT", "SELECT", "TEXTAREA"].includes(document.activeElement.tagName);
  if (event.key === "/" && !typing) {
    event.preventDefault();
    document.getElementById("search").focus();
  }
});
