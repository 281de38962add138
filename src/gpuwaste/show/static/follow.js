"use strict";
// Keeps a page up to date while it is visible: the hub says that there is news, the page is fetched again and its
// content replaced. Without it, or without the stream, the page is whole: a reload shows what is new.
(function () {
  const REFRESH = { "Gpuwaste-Refresh": "1" }; // the reader does nothing: their session is not prolonged
  const AGAIN_MS = 60000; // where the hub gives no stream
  const content = () => document.querySelector("main[data-follow]");
  let source = null;
  let timer = 0;
  let stale = false;

  function later() {
    clearTimeout(timer);
    timer = setTimeout(() => {
      refresh();
      connect();
    }, AGAIN_MS);
  }

  function refresh() {
    const place = content();
    if (!place) return;
    if (document.hidden) {
      stale = true;
      return;
    }
    stale = false;
    const open = new Set([...place.querySelectorAll("details[open] > summary")].map((one) => one.textContent));
    const path = location.pathname + location.search;
    htmx.ajax("GET", path, { target: "#main", select: "#main", swap: "outerHTML show:none", headers: REFRESH }).then(() => {
      for (const one of document.querySelectorAll("main details > summary")) {
        if (open.has(one.textContent)) one.parentElement.open = true;
      }
      if (!content()) close(); // a job that has ended changes no more
    });
  }

  function close() {
    clearTimeout(timer);
    if (source) source.close();
    source = null;
  }

  function connect() {
    const place = content();
    close();
    if (!place || document.hidden) return;
    source = new EventSource(place.dataset.follow);
    source.addEventListener("changed", refresh);
    source.addEventListener("over", () => {
      close();
      location.reload();
    });
    source.addEventListener("error", () => {
      if (source && source.readyState === EventSource.CLOSED) later();
    });
  }

  document.addEventListener("htmx:responseError", (event) => {
    if (event.detail.xhr.status === 401) location.reload();
  });
  document.addEventListener("visibilitychange", () => {
    if (stale) refresh();
    connect();
  });
  addEventListener("pagehide", close);
  connect();
})();
