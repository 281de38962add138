"""What Chromium takes for pages: the largest paint, and drawing the curves of 8 GPUs x 24 h after the data."""

import os
import statistics
from typing import Any, Final

import msgspec
from playwright.sync_api import BrowserContext, CDPSession, sync_playwright

from gpuwaste.ledger.curves.curve_types import CurveSeries, GpuCurves, JobCurves, NodeCurves, RunCurves

CHROMIUM: Final = "/usr/bin/chromium"
TARGET_PAINT_MS: Final = 1000
TARGET_CURVES_MS: Final = 300
GPUS: Final = 8
SLOTS: Final = 1000  # with mean, minimum and maximum: what a node answers for 24 h at 10 s
_DAY_MS: Final = 86_400_000
_ROUNDS: Final = 5
_PAINT: Final = """() => new Promise((done) => new PerformanceObserver((list) => {
  done(Math.max(...list.getEntries().map((entry) => entry.startTime)));
}).observe({ type: "largest-contentful-paint", buffered: true }))"""
_DRAWN: Final = "() => performance.getEntriesByName('curves-drawn').length > 0"
_TOOK: Final = "() => performance.getEntriesByName('curves-drawn')[0].duration"


def painted(url: str, cookie: str, user_page: str, job_page: str) -> dict[str, Any]:
    """Open both pages some times each, and the curves of the job; print and return the milliseconds."""
    name, _, value = cookie.partition("=")
    figures: dict[str, Any] = {}
    with sync_playwright() as playwright:
        arguments = ["--disable-gpu", *(["--no-sandbox"] if os.geteuid() == 0 else [])]
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
        for label, path in (("user", user_page), ("job", job_page)):
            times, curves = [], []
            for _ in range(_ROUNDS):  # each with an empty cache
                context = browser.new_context(viewport={"width": 1440, "height": 900})
                context.add_cookies([{"name": name, "value": value, "url": url}])
                times.append(paint_ms(context, f"{url}{path}"))
                if label == "job":
                    curves.append(curves_ms(context, f"{url}{path}"))
                context.close()
            figures[f"{label}_paint"] = spread(f"largest paint of {path}", times, TARGET_PAINT_MS)
        drawn = f"curves of {GPUS} GPUs x {SLOTS} slots, drawn"
        figures["curves"] = spread(drawn, [wall for wall, _ in curves], TARGET_CURVES_MS)
        figures["curves_cpu"] = spread(f"{drawn}, CPU", [cpu for _, cpu in curves], TARGET_CURVES_MS)
        browser.close()
    return figures


def paint_ms(context: BrowserContext, url: str) -> float:
    """Return when the largest paint of a page was, from the start of its loading."""
    page = context.new_page()
    page.goto(url, wait_until="networkidle")
    found: float = page.evaluate(_PAINT)
    page.close()
    return found


def curves_ms(context: BrowserContext, url: str) -> tuple[float, float]:
    """Return how long the curves of a page took from the arrival of their data until they were drawn.

    The second is the CPU time of the page's main thread from the click on: it is the same on a busy host.
    """
    page = context.new_page()
    devtools = context.new_cdp_session(page)
    devtools.send("Performance.enable", {"timeDomain": "threadTicks"})
    body = msgspec.json.encode(a_day())
    page.route("**/curves.json", lambda route: route.fulfill(body=body, content_type="application/json"))
    page.goto(url, wait_until="networkidle")
    before = busy_ms(devtools)
    page.locator("#curves > summary").click()
    page.wait_for_function(_DRAWN)
    if page.locator("#curves canvas").count() != GPUS:
        raise SystemExit("not every GPU has a chart")
    found: float = page.evaluate(_TOOK)
    busy = busy_ms(devtools) - before
    page.close()
    return found, busy


def busy_ms(devtools: CDPSession) -> float:
    """Return what the main thread of a page has worked."""
    metrics = devtools.send("Performance.getMetrics")["metrics"]
    return next(1000 * float(one["value"]) for one in metrics if one["name"] == "TaskDuration")


def a_day() -> JobCurves:
    """Return a document as the hub has it: a value moves by every slot, as samples do."""
    times = [slot * _DAY_MS // SLOTS for slot in range(SLOTS)]

    def series(gpu: int, top: float) -> CurveSeries:
        mean = [top * ((slot * 7919 + gpu * 31) % 1000) / 1000 for slot in range(SLOTS)]
        return CurveSeries(mean=list(mean), min=[0.8 * one for one in mean], max=[min(top, 1.2 * one) for one in mean])

    gpus = [
        GpuCurves(
            gpu_uuid=f"GPU-{gpu}",
            mem_total_b=80 << 30,
            power_limit_w=700.0,
            util_pct=series(gpu, 100),
            sm_pct=series(gpu, 100),
            mem_used_b=series(gpu, float(80 << 30)),
            power_w=series(gpu, 700),
        )
        for gpu in range(GPUS)
    ]
    node = NodeCurves(
        node="gpu1", state="answered", source="agent", interval_ms=_DAY_MS // SLOTS, t_ms=times, gpus=gpus
    )
    run = RunCurves(cluster="bench", job_id=1, printed_id="1", start=0, end=86_400, nodes=[node])
    return JobCurves(generated=86_400, printed_id="1", runs=[run])


def spread(name: str, times: list[float], target: int) -> dict[str, float]:
    """Print and return what the times are."""
    found = {"min_ms": min(times), "median_ms": statistics.median(times), "max_ms": max(times)}
    words = ", ".join(f"{key.removesuffix('_ms')} {ms:.0f}" for key, ms in found.items())
    print(f"{name}: {words} ms in {len(times)} rounds (target {target})", flush=True)
    return {key: round(ms, 1) for key, ms in found.items()}
