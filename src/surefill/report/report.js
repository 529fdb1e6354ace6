"use strict";
(() => {
  const at = (id) => document.getElementById(id);
  const data = JSON.parse(at("data").textContent);
  const show = (...ids) => ids.forEach((id) => { at(id).hidden = false; });
  const write = (words) => Object.entries(words).forEach(([id, text]) => { at(id).textContent = text; });

  /* Another tolerance: everything was computed beforehand, the slider only chooses. */
  const slider = at("tolerance");
  let chosen = data.asked;
  const followers = [];
  const choose = () => {
    chosen = Number(slider.value);
    const outcome = data.outcomes[chosen];
    write({
      "tolerance-value": outcome.tolerance, "panel-tolerance": outcome.tolerance, verdict: outcome.verdict, fills: outcome.fills,
      filled: outcome.filled, kept: outcome.kept, "calibration-kept": outcome.calibration, error: outcome.error, why: outcome.why,
    });
    slider.setAttribute("aria-valuetext", outcome.spoken);
    at("reset").disabled = chosen === data.asked;
    followers.forEach((follower) => follower(outcome));
  };

  followers.push((outcome) => outcome.parts.forEach(([name, share, x, width], k) => {
    write({ [`part-name${k}`]: name, [`part${k}`]: share });
    at(`bar${k}`).setAttribute("x", x);
    at(`bar${k}`).setAttribute("width", width);
  }));

  followers.push((outcome) => {
    const asked = chosen === data.asked;
    const [mark, line] = [at("other-mark"), at("other-line")];
    at("curve").setAttribute("points", outcome.curve);
    at("tail").setAttribute("points", outcome.tail);
    mark.setAttribute("visibility", asked || outcome.x === null ? "hidden" : "visible");
    if (outcome.x !== null) mark.setAttribute("transform", `translate(${outcome.x} ${outcome.y})`);
    line.setAttribute("visibility", asked ? "hidden" : "visible");
    for (const [name, value] of Object.entries({ x1: data.left, x2: data.right, y1: outcome.line, y2: outcome.line })) {
      line.setAttribute(name, value);
    }
  });

  /* Examples: the first cells of the list that are kept, and that are refused for each reason. */
  const exampleRow = ([row, column, ...numbers], outcome) => {
    const line = document.createElement("tr");
    [row, column, outcome, ...numbers].forEach((text, k) => {
      const cell = document.createElement(k ? "td" : "th");
      if (!k) cell.scope = "row";
      cell.textContent = text;
      line.append(cell);
    });
    return line;
  };
  followers.push(() => {
    const { lines, refusals, kept, refused, outcomes } = data.examples;
    const of = (reason) => lines.filter((_, k) => Number(refusals[chosen][k]) === reason).slice(0, reason ? refused : kept);
    at("examples").tBodies[0].replaceChildren(...outcomes.flatMap((name, reason) => of(reason).map((line) => exampleRow(line, name))));
  });

  followers.push((outcome) => ["by-row", "by-column"].forEach((id) => outcome[id].forEach(([kept, error], k) => {
    const cells = at(id).tBodies[0].rows[k].cells;
    cells[2].textContent = kept;
    cells[3].textContent = error;
  })));

  slider.addEventListener("input", choose);
  at("reset").addEventListener("click", () => { slider.value = data.asked; choose(); slider.focus(); });
  slider.value = data.asked;
  choose();
  show("bar", "legend");
  addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((part) => { part.open = true; }));

  /* The heat map: bytes for each layer, drawn once into a bitmap of squares, of which the canvas shows a part. */
  const map = data.map;
  const canvas = at("canvas");
  const readout = at("readout");
  const pen = canvas.getContext("2d");
  const bitmap = document.createElement("canvas");
  const size = map.rows * map.columns;
  const levels = {};
  const view = { x: 0, y: 0, zoom: 1 };
  const cursor = { x: 0, y: 0, u: 0, v: 0, on: false };
  const most = Math.max(1, Math.min(map.columns, map.rows) / 4);
  let keeping = null;
  let layer = "kept";

  const unpack = async (text) => {
    const bytes = Uint8Array.from(atob(text), (sign) => sign.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  };

  /* What is kept at a tolerance is stored as the change from the one before. */
  const added = (changes) => {
    for (let k = size; k < changes.length; k++) changes[k] += changes[k - size];
    return changes;
  };
  const cells = (k) => (map.rowSizes ? map.rowSizes[Math.floor(k / map.columns)] * map.columnSizes[k % map.columns] : map.cells);
  const keptOf = (k) => keeping[chosen * size + k] & 15;
  const refusalOf = (k) => keeping[chosen * size + k] >> 4;
  const levelOf = (k) => (layer === "kept" ? Math.round(255 * keptOf(k) / cells(k)) : levels[layer][k]);

  const percent = (value) => `${(100 * value).toFixed(value > 0 && value < 0.1 ? 1 : 0)}%`;
  const written = (name, level) => {
    if (name === "kept") return map.single ? (level ? "kept" : "not kept") : percent(level / 255);
    const value = map.layers[name].scale[level];
    if (name === "confidence") return value.toFixed(2);
    if (name === "observed") return map.single ? (level ? "observed" : "missing") : percent(value);
    return String(Number(value.toPrecision(name === "risk" ? 2 : 3)));
  };

  const paint = () => {
    bitmap.width = map.columns;
    bitmap.height = map.rows;
    const image = new ImageData(map.columns, map.rows);
    for (let k = 0; k < size; k++) {
      const level = levelOf(k);
      for (let channel = 0; channel < 3; channel++) image.data[4 * k + channel] = map.palette[3 * level + channel];
      image.data[4 * k + 3] = 255;
    }
    bitmap.getContext("2d").putImageData(image, 0, 0);
    const ends = map.single && (layer === "kept" || layer === "observed");
    at("scale").classList.toggle("ends", ends);
    [0, 64, 128, 191, 255].forEach((level, k) => {
      at(`scale-${k}`).textContent = ends && level % 255 ? "" : written(layer, level);
    });
    at("scale-note").textContent = layer === "kept" ? data.outcomes[chosen].note : map.notes[layer];
    if (cursor.on) read();
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

  const keptWords = (k) => {
    const [kept, count, why] = [keptOf(k), cells(k), data.reasons[refusalOf(k)]];
    if (count === 1) return kept ? "kept" : `not kept: ${why}`;
    if (kept === count) return "all kept";
    return kept ? `${percent(kept / count)} kept; the rest mostly: ${why}` : `none kept, mostly: ${why}`;
  };

  const read = () => {
    const k = cursor.y * map.columns + cursor.x;
    const mean = map.single ? "" : "mean ";
    const numbers = ["value", "risk", "confidence"].map((name) => `${mean}${map.layers[name].word} ${written(name, levels[name][k])}`);
    numbers.push(map.single ? written("observed", levels.observed[k]) : `observed ${written("observed", levels.observed[k])}`);
    write({
      "readout-names": `${map.rowName}: ${map.rowLabels[cursor.y]}\n${map.columnName}: ${map.columnLabels[cursor.x]}`,
      "readout-kept": keptWords(k),
      "readout-numbers": numbers.join("\n"),
    });
  };

  /* The read-out lies beside the pointer, where there is room: on no side of it may it cover the pointer or the legend. */
  const GAP = 18;
  const lay = () => {
    const box = canvas.getBoundingClientRect();
    const [x, y] = [box.left + cursor.u * box.width, box.top + cursor.v * box.height];
    const above = Math.max(0, at("bar").getBoundingClientRect().bottom, at("scale").getBoundingClientRect().bottom);
    readout.hidden = !cursor.on || y < above || y > innerHeight;
    if (readout.hidden) return;
    const { width, height } = readout.getBoundingClientRect();
    const wide = document.documentElement.clientWidth;
    const within = (place, low, high) => Math.max(low, Math.min(place, high));
    const beside = within(y + GAP, above + 2, innerHeight - height - 4);
    const middle = within(x - width / 2, 4, wide - width - 4);
    const places = [[x + GAP, beside], [x - GAP - width, beside], [middle, y - GAP - height], [middle, y + GAP]];
    const fits = ([left, top]) => left >= 0 && left + width <= wide && top >= above && top + height <= innerHeight;
    const [left, top] = places.find(fits) || [middle, y - above > innerHeight - y ? y - GAP - height : y + GAP];
    readout.style.left = `${left}px`;
    readout.style.top = `${top}px`;
  };

  const point = (x, y, spot) => {
    cursor.x = Math.min(map.columns - 1, Math.max(0, Math.floor(x)));
    cursor.y = Math.min(map.rows - 1, Math.max(0, Math.floor(y)));
    [cursor.u, cursor.v] = spot || centre();
    cursor.on = true;
    read();
    draw();
    lay();
  };
  const leave = () => {
    cursor.on = false;
    readout.hidden = true;
    draw();
  };
  const centre = () => [(cursor.x + 0.5 - view.x) * view.zoom / map.columns, (cursor.y + 0.5 - view.y) * view.zoom / map.rows]
    .map((part) => Math.min(1, Math.max(0, part)));

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
    [cursor.u, cursor.v] = centre();
    lay();
  };

  const keys = {
    ArrowLeft: () => point(cursor.x - 1, cursor.y), ArrowRight: () => point(cursor.x + 1, cursor.y),
    ArrowUp: () => point(cursor.x, cursor.y - 1), ArrowDown: () => point(cursor.x, cursor.y + 1),
    "+": () => zoom(1.6), "=": () => zoom(1.6), "-": () => zoom(1 / 1.6), 0: () => zoom(0), Escape: leave,
  };
  canvas.addEventListener("keydown", (event) => {
    if (!keys[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    keys[event.key]();
    if (cursor.on) follow();
  });
  canvas.addEventListener("blur", leave);
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
    point(...square(place(event)), place(event));
  });
  canvas.addEventListener("pointermove", (event) => {
    const [now, before] = [place(event), fingers.get(event.pointerId)];
    if (!before) return point(...square(now), now);
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
  canvas.addEventListener("pointerleave", (event) => { if (event.pointerType === "mouse") leave(); });
  addEventListener("pointerdown", (event) => { if (event.target !== canvas) leave(); });
  addEventListener("scroll", lay, { passive: true });
  canvas.addEventListener("touchmove", (event) => { if (event.touches.length > 1) event.preventDefault(); }, { passive: false });
  canvas.addEventListener("dblclick", (event) => zoom(2, place(event)));
  at("zoom-in").addEventListener("click", () => zoom(1.6));
  at("zoom-out").addEventListener("click", () => zoom(1 / 1.6));
  at("zoom-all").addEventListener("click", () => zoom(0));
  at("layers").addEventListener("change", (event) => { layer = event.target.value; paint(); });

  const fit = () => {
    const wide = at("frame").clientWidth;
    const shape = Math.min(1.6, Math.max(0.75, map.columns / map.rows));
    const tall = Math.min(wide / shape, Math.max(320, innerHeight * 0.7));
    const dots = window.devicePixelRatio || 1;
    canvas.style.height = `${tall}px`;
    canvas.width = Math.round(wide * dots);
    canvas.height = Math.round(tall * dots);
    draw();
    lay();
  };

  const start = async () => {
    for (const name of Object.keys(map.layers)) levels[name] = await unpack(map.layers[name].data);
    keeping = added(await unpack(map.kept));
    followers.push(() => { if (layer === "kept") paint(); });
    layer = document.querySelector("#layers input:checked").value;
    document.querySelector("#frame img").hidden = true;
    canvas.hidden = false;
    show("layers", "tools", "map-help");
    paint();
    fit();
    addEventListener("resize", fit);
    document.documentElement.dataset.ready = "yes";
  };
  if ("DecompressionStream" in window) start();
})();
