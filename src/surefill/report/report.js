"use strict";
(() => {
  const at = (id) => document.getElementById(id);
  const data = JSON.parse(at("data").textContent);
  const show = (...ids) => ids.forEach((id) => { at(id).hidden = false; });

  /* Another tolerance: everything was computed beforehand, the slider only chooses. */
  const slider = at("tolerance");
  const choose = () => {
    const k = Number(slider.value);
    const outcome = data.outcomes[k];
    const asked = k === data.asked;
    at("tolerance-value").textContent = outcome.tolerance;
    at("verdict").textContent = (outcome.promised ? "✓ Promised" : "✗ Not promised") + (asked ? ", as asked" : "");
    at("kept").textContent = outcome.kept;
    at("calibration-kept").textContent = outcome.calibration;
    at("error").textContent = outcome.error;
    at("why").textContent = outcome.why;
    slider.setAttribute("aria-valuetext", outcome.spoken);
    const mark = at("other-mark");
    const line = at("other-line");
    mark.setAttribute("visibility", asked || outcome.x === null ? "hidden" : "visible");
    if (outcome.x !== null) mark.setAttribute("transform", `translate(${outcome.x} ${outcome.y})`);
    line.setAttribute("visibility", asked ? "hidden" : "visible");
    for (const [name, value] of Object.entries({ x1: data.left, x2: data.right, y1: outcome.line, y2: outcome.line })) {
      line.setAttribute(name, value);
    }
    at("reset").disabled = asked;
  };
  slider.addEventListener("input", choose);
  at("reset").addEventListener("click", () => { slider.value = data.asked; choose(); slider.focus(); });
  slider.value = data.asked;
  choose();
  show("explorer", "legend");
  addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((part) => { part.open = true; }));

  /* The heat map: bytes for each layer, drawn once into a bitmap of squares, of which the canvas shows a part. */
  const map = data.map;
  const canvas = at("canvas");
  const pen = canvas.getContext("2d");
  const bitmap = document.createElement("canvas");
  const levels = {};
  const view = { x: 0, y: 0, zoom: 1 };
  const cursor = { x: 0, y: 0, on: false };
  const most = Math.max(1, Math.min(map.columns, map.rows) / 4);
  let layer = "confidence";

  const unpack = async (text) => {
    const bytes = Uint8Array.from(atob(text), (sign) => sign.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  };

  const paint = () => {
    bitmap.width = map.columns;
    bitmap.height = map.rows;
    const image = new ImageData(map.columns, map.rows);
    levels[layer].forEach((level, k) => {
      for (let channel = 0; channel < 3; channel++) image.data[4 * k + channel] = map.palette[3 * level + channel];
      image.data[4 * k + 3] = 255;
    });
    bitmap.getContext("2d").putImageData(image, 0, 0);
    at("scale-low").textContent = written(layer, 0);
    at("scale-high").textContent = written(layer, 255);
    draw();
  };

  const limit = () => {
    view.zoom = Math.min(most, Math.max(1, view.zoom));
    view.x = Math.min(map.columns * (1 - 1 / view.zoom), Math.max(0, view.x));
    view.y = Math.min(map.rows * (1 - 1 / view.zoom), Math.max(0, view.y));
  };

  const draw = () => {
    limit();
    const [w, h] = [map.columns / view.zoom, map.rows / view.zoom];
    const [across, down] = [canvas.width / w, canvas.height / h];
    pen.imageSmoothingEnabled = across < 1 || down < 1;
    pen.drawImage(bitmap, view.x, view.y, w, h, 0, 0, canvas.width, canvas.height);
    if (cursor.on) {
      const box = [(cursor.x - view.x) * across, (cursor.y - view.y) * down, Math.max(across, 4), Math.max(down, 4)];
      for (const [colour, width] of [["#000", 4], ["#fff", 2]]) {
        pen.strokeStyle = colour;
        pen.lineWidth = width * (window.devicePixelRatio || 1);
        pen.strokeRect(...box);
      }
    }
    at("zoom-level").textContent = view.zoom > 1.01 ? `${view.zoom.toFixed(1)} times as large` : "";
    at("zoom-in").disabled = view.zoom >= most;
    at("zoom-out").disabled = at("zoom-all").disabled = view.zoom <= 1;
    canvas.style.touchAction = view.zoom > 1.01 ? "none" : "pan-y";
  };

  const written = (name, level) => {
    const { low, high, share } = map.layers[name];
    const value = low + (high - low) * level / 255;
    if (!share) return value.toPrecision(3);
    if (name === "confidence") return value.toFixed(2);
    if (map.single) return level ? "yes" : "no";
    return `${(100 * value).toFixed(value > 0 && value < 0.1 ? 1 : 0)}%`;
  };

  const read = () => {
    const k = cursor.y * map.columns + cursor.x;
    const parts = Object.keys(map.layers).map((name) => `${map.layers[name].word} ${written(name, levels[name][k])}`);
    at("readout").textContent =
      `${map.rowName}: ${map.rowLabels[cursor.y]}\n${map.columnName}: ${map.columnLabels[cursor.x]}\n${parts.join(" · ")}`;
  };

  const point = (x, y) => {
    cursor.x = Math.min(map.columns - 1, Math.max(0, Math.floor(x)));
    cursor.y = Math.min(map.rows - 1, Math.max(0, Math.floor(y)));
    cursor.on = true;
    read();
    draw();
  };

  const place = (event) => {
    const box = canvas.getBoundingClientRect();
    return [(event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height];
  };
  const square = ([u, v]) => [view.x + u * map.columns / view.zoom, view.y + v * map.rows / view.zoom];

  /* Zoom so that what lies at (u, v) of the canvas stays there. */
  const zoom = (factor, [u, v] = [0.5, 0.5]) => {
    const [x, y] = square([u, v]);
    view.zoom = Math.min(most, Math.max(1, view.zoom * factor));
    view.x = x - u * map.columns / view.zoom;
    view.y = y - v * map.rows / view.zoom;
    draw();
  };

  const follow = () => {
    const [w, h] = [map.columns / view.zoom, map.rows / view.zoom];
    if (cursor.x < view.x || cursor.x + 1 > view.x + w) view.x = cursor.x + 0.5 - w / 2;
    if (cursor.y < view.y || cursor.y + 1 > view.y + h) view.y = cursor.y + 0.5 - h / 2;
    draw();
  };

  const keys = {
    ArrowLeft: () => point(cursor.x - 1, cursor.y), ArrowRight: () => point(cursor.x + 1, cursor.y),
    ArrowUp: () => point(cursor.x, cursor.y - 1), ArrowDown: () => point(cursor.x, cursor.y + 1),
    "+": () => zoom(1.6), "=": () => zoom(1.6), "-": () => zoom(1 / 1.6), 0: () => zoom(0),
  };
  canvas.addEventListener("keydown", (event) => {
    if (!keys[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    keys[event.key]();
    follow();
  });
  canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    zoom(Math.exp(-event.deltaY / 300), place(event));
  }, { passive: false });

  /* One finger or button moves, two fingers zoom. */
  const fingers = new Map();
  canvas.addEventListener("pointerdown", (event) => {
    fingers.set(event.pointerId, place(event));
    if (view.zoom > 1) canvas.setPointerCapture(event.pointerId);
    point(...square(place(event)));
  });
  canvas.addEventListener("pointermove", (event) => {
    const [now, before] = [place(event), fingers.get(event.pointerId)];
    if (!before) return point(...square(now));
    const others = [...fingers].filter(([id]) => id !== event.pointerId).map(([, spot]) => spot);
    if (others.length) {
      const apart = (spot) => Math.hypot(spot[0] - others[0][0], spot[1] - others[0][1]);
      zoom(apart(now) / Math.max(apart(before), 0.01), others[0]);
    } else {
      view.x -= (now[0] - before[0]) * map.columns / view.zoom;
      view.y -= (now[1] - before[1]) * map.rows / view.zoom;
      draw();
    }
    fingers.set(event.pointerId, now);
  });
  for (const name of ["pointerup", "pointercancel", "pointerleave"]) {
    canvas.addEventListener(name, (event) => fingers.delete(event.pointerId));
  }
  canvas.addEventListener("touchmove", (event) => { if (event.touches.length > 1) event.preventDefault(); }, { passive: false });
  canvas.addEventListener("dblclick", (event) => zoom(2, place(event)));
  at("zoom-in").addEventListener("click", () => zoom(1.6, cursor.on ? centre() : undefined));
  at("zoom-out").addEventListener("click", () => zoom(1 / 1.6));
  at("zoom-all").addEventListener("click", () => zoom(0));
  const centre = () => [(cursor.x + 0.5 - view.x) * view.zoom / map.columns, (cursor.y + 0.5 - view.y) * view.zoom / map.rows]
    .map((part) => Math.min(1, Math.max(0, part)));
  at("layers").addEventListener("change", (event) => { layer = event.target.value; paint(); });

  const fit = () => {
    const wide = at("frame").clientWidth;
    const shape = Math.min(1.6, Math.max(0.75, map.columns / map.rows));
    const tall = Math.min(wide / shape, Math.max(320, innerHeight * 0.8));
    const dots = window.devicePixelRatio || 1;
    canvas.style.height = `${tall}px`;
    canvas.width = Math.round(wide * dots);
    canvas.height = Math.round(tall * dots);
    draw();
  };

  const start = async () => {
    for (const name of Object.keys(map.layers)) levels[name] = await unpack(map.layers[name].data);
    document.querySelector("#frame img").hidden = true;
    canvas.hidden = false;
    show("layers", "tools", "readout", "map-help");
    at("readout").textContent = "Point at a square to read it.";
    paint();
    fit();
    addEventListener("resize", fit);
    document.documentElement.dataset.ready = "yes";
  };
  if ("DecompressionStream" in window) start();
})();
