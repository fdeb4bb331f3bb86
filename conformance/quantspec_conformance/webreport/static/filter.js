for (const table of document.querySelectorAll("table[data-filter]")) {
  const rows = [...table.tBodies].flatMap((body) => [...body.rows]);
  if (rows.length < 8) continue;
  const label = document.createElement("label");
  const box = document.createElement("input");
  const said = document.createElement("output");
  box.type = "search";
  label.className = "filter";
  label.append("Show rows with ", box, " ", said);
  table.parentElement.before(label);
  box.addEventListener("input", () => {
    const words = box.value.toLowerCase().split(/\s+/);
    let shown = 0;
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
      shown += row.hidden ? 0 : 1;
    }
    said.textContent = box.value.trim() ? `${shown} of ${rows.length}` : "";
  });
}
