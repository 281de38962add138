"use strict";
// Times in the reader's zone, and buttons that copy a line. Pages are whole without it.
(function () {
  const two = (number) => String(number).padStart(2, "0");

  function localTimes(root) {
    for (const element of root.querySelectorAll("time[datetime]")) {
      const at = new Date(element.dateTime);
      if (!Number.isNaN(at.getTime())) {
        element.textContent =
          `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${two(at.getHours())}:${two(at.getMinutes())}`;
      }
    }
  }

  function copyButtons(root) {
    if (!navigator.clipboard) return;
    for (const button of root.querySelectorAll("button[data-copy]")) {
      button.hidden = false;
      button.onclick = async () => {
        await navigator.clipboard.writeText(button.dataset.copy);
        button.textContent = "copied";
      };
    }
  }

  function prepare(root) {
    localTimes(root);
    copyButtons(root);
  }

  prepare(document);
  document.addEventListener("htmx:load", (event) => prepare(event.detail.elt));
})();
