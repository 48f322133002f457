// The live page: numbers and lists from /events, charts of the last minutes, switches to /set.
"use strict";
(() => {
  const byId = (id) => document.getElementById(id);
  const minutes = 3;
  const charts = [
    ["fps", "Frames", "FPS", 1], ["latency", "Latency", "ms", 1000], ["load", "Load", "%", 100],
    ["hz", "Frequency", "MHz", 1e-6], ["watts", "Power", "W", 1], ["edp", "EDP", "mJ·s", 1000],
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
    const scale = figure.appendChild(document.createElement("p"));
    document.querySelector(".charts").append(figure);
    Object.assign(chart, { value, drawing, scale, lines: new Map(), due: 0 });
  }

  const short = (v) => v >= 100 ? v.toFixed(0) : v >= 10 ? v.toFixed(1) : v.toPrecision(2);

  // values: [[name, value]], a line each; a name that is gone goes with its last point.
  function plot(chart, now, values) {
    const [, title, unit, factor] = chart;
    for (const [name, v] of values) {
      if (typeof v !== "number") continue;
      if (!chart.lines.has(name)) {
        const drawn = svg("polyline", chart.drawing);
        drawn.classList.add("line" + chart.lines.size % 4);
        chart.lines.set(name, { drawn, points: [] });
      }
      chart.lines.get(name).points.push([now, v * factor]);
    }
    if (now < chart.due) return;
    chart.due = now + 1;
    for (const [name, { drawn, points }] of chart.lines) {
      while (points.length && points[0][0] < now - minutes * 60) points.shift();
      if (points.length) continue;
      drawn.remove();
      chart.lines.delete(name);
    }
    const all = [...chart.lines.values()].flatMap((line) => line.points);
    if (!all.length) {
      chart.value.textContent = "not measured";
      chart.scale.textContent = "";
      chart.drawing.setAttribute("aria-label", `${title}: not measured`);
      return;
    }
    const most = all.reduce((a, p) => Math.max(a, p[1]), 1e-9) * 1.1;
    const span = Math.max(15, now - all.reduce((a, p) => Math.min(a, p[0]), now));
    const x = (at) => 100 - (now - at) / span * 100;
    for (const { drawn, points } of chart.lines.values()) {
      drawn.setAttribute("points",
        points.map(([at, y]) => `${x(at).toFixed(2)},${(100 - y / most * 100).toFixed(2)}`).join(" "));
    }
    const last = [...chart.lines].map(([name, { points }]) =>
      (chart.lines.size > 1 ? name + " " : "") + short(points[points.length - 1][1])).join(", ");
    chart.value.textContent = `${last} ${unit}`;
    chart.scale.textContent = `${span < 60 ? span.toFixed(0) + " s" : (span / 60).toFixed(1) + " min"}, 0 to ${short(most)}`;
    chart.drawing.setAttribute("aria-label",
      `${title}: ${last} ${unit}, at most ${short(most / 1.1)} in ${minutes} minutes`);
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
    for (const chart of charts) {
      const several = chart[0] === "hz" && s.clocks && s.clocks.map((k) => [k.name, k.hz]);
      plot(chart, s.now, several || [["", s[chart[0]]]]);
    }
    byId("threshold-row").hidden = typeof s.threshold !== "number";
    if (document.activeElement !== byId("threshold") && typeof s.threshold === "number") {
      byId("threshold").value = s.threshold;
      byId("threshold-value").textContent = Number(s.threshold).toFixed(2);
    }
    choose(byId("governor"), s.governors, s.governor);
    choose(byId("policy"), s.policies, s.policy);
    byId("placed").textContent = (s.placed || []).map((on) => `${on.device}: ${on.layers} layers`).join(", ");
    following(s);
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

  // ---- a box that is followed: drawn, or moved by keys ----
  const overlay = byId("overlay"), draft = byId("draft"), mark = byId("mark");
  let size = null, box = null, from = null; // the frame's size; the draft; where the pointer went down

  function following(s) {
    const f = s.follow;
    size = f === undefined ? null : [s.width, s.height];
    byId("follow").hidden = !size;
    if (!size) return;
    overlay.setAttribute("viewBox", `0 0 ${s.width} ${s.height}`);
    byId("let-go").hidden = !f;
    const text = !f ? "" : f.lost ? "lost: out of view" : `followed, ${(f.confidence * 100).toFixed(0)} % sure`;
    if (!marking() && byId("followed").textContent !== text) byId("followed").textContent = text;
  }

  const marking = () => mark.getAttribute("aria-pressed") === "true";

  function draw(x, y, w, h) {
    const wide = Math.min(Math.max(w, 4), size[0]), high = Math.min(Math.max(h, 4), size[1]);
    box = [Math.min(Math.max(x, 0), size[0] - wide), Math.min(Math.max(y, 0), size[1] - high), wide, high].map(Math.round);
    ["x", "y", "width", "height"].forEach((name, i) => draft.setAttribute(name, box[i]));
    byId("followed").textContent = `box at ${box[0]}, ${box[1]}: ${box[2]} × ${box[3]}`;
  }

  function leave() {
    mark.setAttribute("aria-pressed", "false");
    overlay.classList.remove("marking");
    overlay.tabIndex = -1;
    draft.setAttribute("width", 0);
    box = from = null;
  }

  function follow() {
    const wanted = box;
    leave();
    if (wanted) set("follow", wanted);
    mark.focus();
  }

  mark.addEventListener("click", () => {
    if (marking() || !size) return leave();
    mark.setAttribute("aria-pressed", "true");
    overlay.classList.add("marking");
    overlay.tabIndex = 0;
    draw(size[0] / 3, size[1] / 3, size[0] / 3, size[1] / 3);
    overlay.focus();
  });
  byId("let-go").addEventListener("click", () => set("follow", false));

  const at = (e) => {
    const r = overlay.getBoundingClientRect();
    return [(e.clientX - r.left) / r.width * size[0], (e.clientY - r.top) / r.height * size[1]];
  };
  overlay.addEventListener("pointerdown", (e) => {
    if (!marking()) return;
    overlay.setPointerCapture(e.pointerId);
    from = at(e);
  });
  overlay.addEventListener("pointermove", (e) => {
    if (!from) return;
    const [x, y] = at(e);
    draw(Math.min(x, from[0]), Math.min(y, from[1]), Math.abs(x - from[0]), Math.abs(y - from[1]));
  });
  overlay.addEventListener("pointerup", () => { if (from) follow(); });
  overlay.addEventListener("keydown", (e) => {
    const way = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[e.key];
    if (e.key === "Enter") follow();
    else if (e.key === "Escape") { leave(); mark.focus(); }
    else if (way && box) {
      const [dx, dy] = way.map((d) => d * Math.max(2, size[0] / 64));
      if (e.shiftKey) draw(box[0], box[1], box[2] + dx, box[3] + dy);
      else draw(box[0] + dx, box[1] + dy, box[2], box[3]);
    } else return;
    e.preventDefault();
  });

  byId("form").addEventListener("submit", (e) => e.preventDefault());
  byId("threshold").addEventListener("input", () => {
    byId("threshold-value").textContent = Number(byId("threshold").value).toFixed(2);
  });
  byId("threshold").addEventListener("change", () => set("threshold", Number(byId("threshold").value)));
  for (const name of ["governor", "policy"]) {
    byId(name).addEventListener("change", () => set(name, byId(name).value));
  }
})();
