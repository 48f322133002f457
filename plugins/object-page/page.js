// The live page: numbers and lists from /events, charts of the last ten minutes, settings to /set. The state of
// `cnnrun energy watch --page` has curves of power alone: the last minute of them.
"use strict";
(() => {
  const byId = (id) => document.getElementById(id);
  let span_seconds = 600, apart = 1; // what charts show, and the least time between two points of them
  const charts = [
    ["fps", "Frames", "FPS", 1, "Frames a second that are looked at"],
    ["latency", "Latency", "ms", 1000, "From a frame's coming until it has been looked at"],
    ["load", "Load", "%", 100, "The part of the time in which the net runs"],
    ["hz", "Frequency", "MHz", 1e-6, "Of the processor's fastest group of cores"],
    ["watts", "Power", "W", 1, "What the machine draws, by a meter; a curve for each domain that it can tell"],
    ["edp", "EDP", "mJ·s", 1000, "Energy-delay product: joules of a frame times its seconds"],
    ["energies", "Energy", "J", 1, "Joules since the log began"],
  ];
  let held = false, offset = 0; // pause; what is to be added to the monitor's seconds for those of the day

  // ---- charts ----
  const svg = (name, parent) =>
    parent.appendChild(document.createElementNS("http://www.w3.org/2000/svg", name));
  for (const chart of charts) {
    const figure = document.createElement("figure");
    const caption = figure.appendChild(document.createElement("figcaption"));
    caption.append(chart[1]);
    caption.title = chart[4];
    figure.hidden = true; // until there is something to show
    const value = caption.appendChild(document.createElement("span"));
    const drawing = svg("svg", figure);
    drawing.setAttribute("viewBox", "0 0 100 100");
    drawing.setAttribute("preserveAspectRatio", "none");
    drawing.setAttribute("role", "img");
    const scale = figure.appendChild(document.createElement("p"));
    document.querySelector(".charts").append(figure);
    Object.assign(chart, { figure, value, drawing, scale, lines: new Map(), due: 0 });
  }

  const clock = (seconds) => new Date((seconds + offset) * 1000).toLocaleTimeString([], { hour12: false });

  function named(text, line) { // with a line beneath it as its curve has
    const name = document.createElement("b");
    name.className = line;
    name.textContent = text;
    return name;
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
      const points = chart.lines.get(name).points;
      if (points.length > 1 && now - points[points.length - 2][0] < apart) points.pop();
      points.push([now, v * factor]);
    }
    if (now < chart.due) return;
    chart.due = now + Math.min(1, 4 * apart);
    for (const [name, { drawn, points }] of chart.lines) {
      while (points.length && points[0][0] < now - span_seconds) points.shift();
      if (points.length) continue;
      drawn.remove();
      chart.lines.delete(name);
    }
    const all = [...chart.lines.values()].flatMap((line) => line.points);
    chart.figure.hidden = !all.length;
    document.querySelector(".charts").hidden = charts.every((c) => c.figure.hidden);
    if (!all.length) return;
    const most = all.reduce((a, p) => Math.max(a, p[1]), 1e-9) * 1.1;
    const span = Math.max(15, now - all.reduce((a, p) => Math.min(a, p[0]), now));
    const x = (at) => 100 - (now - at) / span * 100;
    for (const { drawn, points } of chart.lines.values()) {
      drawn.setAttribute("points",
        points.map(([at, y]) => `${x(at).toFixed(2)},${(100 - y / most * 100).toFixed(2)}`).join(" "));
    }
    const several = chart.lines.size > 1, each = [...chart.lines].map(([name, { drawn, points }]) =>
      named((several ? name + " " : "") + short(points[points.length - 1][1]), several ? drawn.getAttribute("class") : ""));
    const last = each.map((name) => name.textContent).join(", ");
    chart.value.replaceChildren(...each.flatMap((name, i) => i ? [", ", name] : [name]), " " + unit);
    chart.scale.textContent = `${clock(now - span)} to ${clock(now)}, 0 to ${short(most)}`;
    chart.drawing.setAttribute("aria-label",
      `${title}: ${last} ${unit}, at most ${short(most / 1.1)} in ${span_seconds / 60} minutes`);
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

  // Ten minutes of them, newest first; a state has the newest.
  const seen = [];
  let newest = -Infinity;
  function remember(list, now) {
    for (const e of [...list].reverse()) {
      if (e.now < newest || e.now === newest && seen.some((o) => o.now === e.now && o.text === e.text)) continue;
      newest = e.now;
      seen.unshift(e);
    }
    while (seen.length > 500 || seen.length && seen[seen.length - 1].now < now - span_seconds) seen.pop();
    return seen;
  }

  // ---- state ----
  function choose(select, names, now) {
    if (select.options.length !== names.length) {
      select.replaceChildren(...names.map((name) => new Option(name, name)));
    }
    if (document.activeElement !== select) select.value = now;
  }

  // A log of power has neither picture nor finds, and its curves are followed more closely.
  function power() {
    document.body.classList.add("power");
    [span_seconds, apart] = [60, .04];
  }

  const called = (source) => source === "-" ? "standard input" : source || "";

  function show(s) {
    const ours = (s.at || Date.now() / 1000) - s.now;
    if (Math.abs(ours - offset) > 1.5) offset = ours; // whole seconds: steady, or the times would flicker
    const name = called(s.source);
    byId("source").textContent = name;
    if (s.app === "power") power();
    document.title = `${s.ended ? "ended" : s.away ? "away" : s.fps ? s.fps.toFixed(1) + " FPS" : "live"} – ${name ? name + " – " : ""}cnnrun monitor`;
    if (s.away) link(`the source is away and is tried again: ${s.away.why}`, true);
    else link(s.ended ? "the source has ended: this is its last frame" : "live", false);
    byId("again").hidden = !s.ended;
    if (s.frame) {
      const parts = [];
      if (s.fps) parts.push(`${s.fps.toFixed(1)} FPS`);
      if (s.inference) parts.push(`${(s.inference * 1000).toFixed(1)} ms a frame`);
      parts.push(`frame ${s.frame}`, `${s.width} × ${s.height}`);
      if (s.lost) parts.push(`${s.lost} passed over`);
      if (s.simulated) parts.push("simulated power and frequencies");
      if (!held) byId("summary").textContent = parts.join("  ·  ");
    }
    if (!held) fill(byId("found"), s.found.length
      ? s.found.map((b) => [b.id ? `${b.label} ${b.id}` : b.label, `${(b.score * 100).toFixed(0)} %`])
      : [["nothing", ""]]);
    const events = remember(s.events, s.now);
    if (!held) fill(byId("events"), events.map((e) => [e.text, clock(e.now)]));
    if (!s.ended && !s.away) {
      for (const chart of charts) {
        const rows = { watts: s.rails, energies: s.energies }[chart[0]];
        const several = chart[0] === "hz" ? s.clocks && s.clocks.map((k) => [k.name, k.hz]) : rows && rows.map((r) => [r.name, r.value]);
        plot(chart, s.now, several || [["", s[chart[0]]]]);
      }
    }
    settings(s);
    following(s);
  }

  // What there is to set; a row without a source is hidden.
  function settings(s) {
    const has = { threshold: typeof s.threshold === "number", classes: Boolean(s.all_classes), governor: Boolean(s.governors),
      policy: Boolean(s.policies) };
    for (const [name, is] of Object.entries(has)) byId(name + "-row").hidden = !is;
    document.querySelector(".switches").hidden = !Object.values(has).some(Boolean);
    if (document.activeElement !== byId("threshold") && has.threshold) {
      byId("threshold").value = s.threshold;
      byId("threshold-value").textContent = Number(s.threshold).toFixed(2);
    }
    const names = byId("class-names");
    if (has.classes && names.children.length !== s.all_classes.length) {
      names.replaceChildren(...s.all_classes.map((name) => new Option(name, name)));
    }
    if (has.classes && document.activeElement !== byId("classes")) byId("classes").value = s.classes || "";
    if (has.governor) choose(byId("governor"), s.governors, s.governor);
    if (has.policy) choose(byId("policy"), s.policies, s.policy);
    byId("placed").textContent = (s.placed || []).map((on) => `${on.device}: ${on.layers} layers`).join(", ");
  }

  function link(text, bad) {
    if (byId("link").textContent !== text) byId("link").textContent = text;
    byId("link").classList.toggle("bad", Boolean(bad));
  }

  const events = new EventSource("events");
  const live = () => { byId("picture").src = "picture.mjpg?" + Date.now(); };
  events.onopen = () => {
    link("live");
    if (!held) live();
  };
  events.onerror = () => link("no connection: the monitor was stopped, or is away", true);
  events.addEventListener("state", (e) => show(JSON.parse(e.data)));

  // ---- the picture ----
  byId("pause").addEventListener("click", () => {
    held = !held;
    byId("pause").setAttribute("aria-pressed", String(held));
    if (held) byId("picture").src = "picture.jpg?" + Date.now();
    else live();
  });
  byId("snapshot").addEventListener("click", async () => {
    const picture = held ? byId("picture").src : "picture.jpg?" + Date.now();
    const response = await fetch(picture);
    if (!response.ok) return say("no picture yet");
    const file = document.createElement("a");
    file.href = URL.createObjectURL(await response.blob());
    file.download = `cnnrun-${new Date().toISOString().slice(0, 19).replace(/:/g, "-")}.jpg`;
    file.click();
    setTimeout(() => URL.revokeObjectURL(file.href), 10000);
    say(`saved as ${file.download}`);
  });
  byId("full").addEventListener("click", () => document.fullscreenElement
    ? document.exitFullscreen() : byId("frame").requestFullscreen().catch((why) => say(String(why))));
  document.addEventListener("fullscreenchange", () =>
    byId("full").setAttribute("aria-pressed", String(Boolean(document.fullscreenElement))));
  byId("again").addEventListener("click", () => set("again", true));

  // ---- settings ----
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (given) { // it stays with this tab, and goes from the address
    sessionStorage.setItem("token", given);
    history.replaceState(null, "", location.pathname);
  }
  const token = () => sessionStorage.getItem("token");
  const lock = (locked) => {
    byId("locked").hidden = !locked;
    for (const e of byId("form").elements) e.disabled = locked;
    byId("mark").disabled = byId("let-go").disabled = byId("again").disabled = locked;
  };
  lock(!token());

  function say(text) { byId("answer").textContent = byId("followed").textContent = text; }

  async function set(name, value) {
    const answer = byId("answer");
    try {
      const response = await fetch("set", {
        method: "POST", body: JSON.stringify({ [name]: value }),
        headers: { Authorization: "Bearer " + token(), "Content-Type": "application/json" },
      });
      if (response.status === 401) lock(true);
      answer.textContent = response.ok ? "" : (await response.text()).trim();
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
    byId("mark").hidden = !size || Boolean(s.ended || s.away);
    if (!size) return void (byId("let-go").hidden = true);
    overlay.setAttribute("viewBox", `0 0 ${s.width} ${s.height}`);
    byId("let-go").hidden = !f;
    const text = !f ? "" : f.lost ? "lost: out of view" : `followed, ${(f.confidence * 100).toFixed(0)} % sure`;
    if (!marking() && (f || following.was) && byId("followed").textContent !== text) byId("followed").textContent = text;
    following.was = f;
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
  for (const name of ["governor", "policy", "classes"]) {
    byId(name).addEventListener("change", () => set(name, byId(name).value));
  }
})();
