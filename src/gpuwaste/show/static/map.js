"use strict";
// Names the node under the pointer or the arrow keys, in a line above the map. Without it the name of each node is a
// tooltip, and all are in the table.
(function () {
  const NODES = ".node-map .node";
  const STEPS = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };

  function name(node) {
    const line = document.getElementById("node-named");
    if (!line) return;
    for (const one of document.querySelectorAll(`${NODES}.current`)) one.classList.remove("current");
    node.classList.add("current");
    line.textContent = node.querySelector("title").textContent;
  }

  function stops() {
    for (const map of document.querySelectorAll(".map [role=group]")) map.tabIndex = 0;
  }

  document.addEventListener("pointerover", (event) => {
    const node = event.target instanceof Element && event.target.closest(NODES);
    if (node) name(node);
  });
  document.addEventListener("keydown", (event) => {
    if (!(event.key in STEPS) || !event.target.matches(".map [role=group]")) return;
    event.preventDefault();
    const nodes = [...event.target.querySelectorAll(".node")];
    const at = nodes.findIndex((node) => node.classList.contains("current"));
    const next = nodes[Math.max(0, Math.min(nodes.length - 1, at + STEPS[event.key]))];
    if (next) name(next);
  });
  document.addEventListener("htmx:load", stops);
  stops();
})();
