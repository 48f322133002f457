// The live page: numbers and lists from /events, charts of the last minutes, switches to /set.
"use strict";
(() => {
  const byId = (id) => document.getElementById(id);
  const minutes = 3;
  const charts = [
    ["fps", "Frames a second", "FPS", 1], ["latency", "Latency", "ms", 1000], ["load", "Load of the net", "%", 100],
    ["hz", "Frequency", "MHz", 1e-6], ["watts", "Power", "W", 1], ["edp", "EDP of a frame", "mJ s", 1000],
  ];

  // ---- charts ----
  const svg = (name, parent) =>
    parent.appendChild(document.createElementNS("http://www.w3.org/2000/svg", name));
  for (const chart of charts) {
    const figure = document.createElement("figure");
    const caption = figure.appendChild(document.createElement("figcaption"));
    caption.append(chart[1]);
    const value = caption.appendChild(document.createElement("span"));
    const drawing = svg("svg", figure);
    drawing.setAttribute("viewBox", "0 0 100 100");
    drawing.setAttribute("preserveAspectRatio", "none");
    drawing.setAttribute("role", "img");
    const line = svg("polyline", drawing);
    document.querySelector(".charts").append(figure);
    Object.assign(chart, { value, drawing, line, points: [], due: 0 });
  }

  const short = (v) => v >= 100 ? v.toFixed(0) : v >= 10 ? v.toFixed(1) : v.toPrecision(2);

  function plot(chart, now, v) {
    const [, title, unit, factor] = chart;
    if (typeof v === "number") chart.points.push([now, v * factor]);
    while (chart.points.length && chart.points[0][0] < now - minutes * 60) chart.points.shift();
    if (now < chart.due) return;
    chart.due = now + 1;
    if (!chart.points.length) {
      chart.value.textContent = "not measured";
      chart.drawing.setAttribute("aria-label", `${title}: not measured`);
      return;
    }
    const most = Math.max(...chart.points.map((p) => p[1]), 1e-9) * 1.1;
    const span = Math.max(15, now - chart.points[0][0]);
    const x = (at) => 100 - (now - at) / span * 100;
    chart.line.setAttribute("points",
      chart.points.map(([at, y]) => `${x(at).toFixed(2)},${(100 - y / most * 100).toFixed(2)}`).join(" "));
    const last = chart.points[chart.points.length - 1][1];
    chart.value.textContent = `${short(last)} ${unit}`;
    chart.drawing.setAttribute("aria-label",
      `${title}: ${short(last)} ${unit}, at most ${short(most / 1.1)} in ${minutes} minutes`);
  }

  // ---- lists ----
  function fill(list, rows) {
    while (list.children.length > rows.length) list.lastChild.remove();
    rows.forEach((row, i) => {
      const item = list.children[i] || list.appendChild(document.createElement("li"));
      row.forEach((text, k) => {
        const part = item.children[k] || item.appendChild(document.createElement("span"));
        if (part.textContent !== text) part.textContent = text;
      });
    });
  }

  const time = (seconds) => {
    const s = Math.max(0, seconds || 0);
    return `${Math.floor(s / 60)}:${(s % 60).toFixed(1).padStart(4, "0")}`;
  };

  // ---- state ----
  function choose(select, names, now) {
    if (select.options.length !== names.length) {
      select.replaceChildren(...names.map((name) => new Option(name, name)));
    }
    if (document.activeElement !== select) select.value = now;
  }

  function show(s) {
    byId("source").textContent = s.source;
    document.title = `${s.fps ? s.fps.toFixed(1) + " FPS" : "monitor"} – ${s.source}`;
    const parts = [];
    if (s.fps) parts.push(`${s.fps.toFixed(1)} FPS`);
    if (s.inference) parts.push(`${(s.inference * 1000).toFixed(1)} ms a frame`);
    parts.push(`frame ${s.frame}`, `${s.width} × ${s.height}`);
    if (s.lost) parts.push(`${s.lost} passed over`);
    byId("summary").textContent = parts.join("  ·  ");
    fill(byId("found"), s.found.length
      ? s.found.map((b) => [b.id ? `${b.label} ${b.id}` : b.label, `${(b.score * 100).toFixed(0)} %`])
      : [["nothing", ""]]);
    fill(byId("events"), s.events.map((e) => [e.text, time(e.seconds)]));
    for (const chart of charts) plot(chart, s.now, s[chart[0]]);
    byId("threshold-row").hidden = typeof s.threshold !== "number";
    if (document.activeElement !== byId("threshold") && typeof s.threshold === "number") {
      byId("threshold").value = s.threshold;
      byId("threshold-value").textContent = Number(s.threshold).toFixed(2);
    }
    choose(byId("governor"), s.governors, s.governor);
    choose(byId("policy"), s.policies, s.policy);
  }

  function link(text, bad) {
    byId("link").textContent = text;
    byId("link").classList.toggle("bad", Boolean(bad));
  }

  const events = new EventSource("events");
  events.onopen = () => {
    link("live");
    byId("picture").src = "picture.mjpg?" + Date.now();
  };
  events.onerror = () => link("no connection: the monitor has ended, or is away", true);
  events.addEventListener("state", (e) => show(JSON.parse(e.data)));

  // ---- switches ----
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (given) { // it stays with this tab, and goes from the address
    sessionStorage.setItem("token", given);
    history.replaceState(null, "", location.pathname);
  }
  byId("token").value = sessionStorage.getItem("token") || "";
  byId("token").addEventListener("change", () => sessionStorage.setItem("token", byId("token").value));

  async function set(name, value) {
    const answer = byId("answer");
    try {
      const response = await fetch("set", {
        method: "POST", body: JSON.stringify({ [name]: value }),
        headers: { Authorization: "Bearer " + byId("token").value, "Content-Type": "application/json" },
      });
      answer.textContent = response.ok ? `${name}: ${value}` : (await response.text()).trim();
    } catch (why) {
      answer.textContent = String(why);
    }
  }
  byId("form").addEventListener("submit", (e) => e.preventDefault());
  byId("threshold").addEventListener("input", () => {
    byId("threshold-value").textContent = Number(byId("threshold").value).toFixed(2);
  });
  byId("threshold").addEventListener("change", () => set("threshold", Number(byId("threshold").value)));
  for (const name of ["governor", "policy"]) {
    byId(name).addEventListener("change", () => set(name, byId(name).value));
  }
})();
