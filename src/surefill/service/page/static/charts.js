"use strict";
// Lines over time, drawn by uPlot in the page's own colours.
const charts = (() => {
  const made = new Map();
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  const short = (value) => (value === null || value === undefined ? "–" : Number(value.toPrecision(3)).toLocaleString("en"));

  const axis = (more) => ({
    stroke: colour("quiet"), grid: { stroke: colour("rule"), width: 1 }, ticks: { stroke: colour("rule"), width: 1 },
    font: "12px system-ui, sans-serif", ...more,
  });
  // Hours and minutes, seconds where ticks are closer, the date where they are days apart.
  const clock = (_, ticks) => {
    const step = ticks.length > 1 ? ticks[1] - ticks[0] : 60;
    return ticks.map((tick) => {
      const local = new Date(1000 * (tick - 60 * new Date(1000 * tick).getTimezoneOffset())).toISOString();
      return step >= 86400 ? local.slice(0, 10) : local.slice(11, step < 60 ? 19 : 16);
    });
  };
  const size = (place) => ({ width: Math.max(200, place.clientWidth), height: 190 });

  // Where nobody points, the legend tells the last values.
  const latest = (plot) => {
    if (!plot.root.matches(":hover")) plot.setLegend({ idx: plot.data[0].length - 1 });
  };

  const put = (name, data, options) => {
    const place = document.getElementById(name);
    if (!place) return;
    place.closest(".plots").hidden = data[0].length === 0;
    if (data[0].length === 0) return;
    if (!made.has(name)) {
      const plot = new uPlot({ ...size(place), padding: [14, 28, 0, 0], ...options(data) }, data, place);
      made.set(name, plot);
      new ResizeObserver(() => { plot.setSize(size(place)); setTimeout(latest, 0, plot); }).observe(place);
      plot.over.addEventListener("mouseleave", () => latest(plot));
    } else made.get(name).setData(data);
    setTimeout(latest, 0, made.get(name));
  };

  const line = (label, name, more) => ({
    label, stroke: colour(name), width: 2, value: (_, value) => short(value), spanGaps: true, ...more,
  });
  const when = { label: "At", value: (_, time) => (time === null ? "–" : new Date(1000 * time).toLocaleTimeString("en-GB")) };
  const fromZero = { range: (_, low, high) => [0, high > 0 ? high * 1.1 : 1] };
  const axes = () => [axis({ values: clock, space: 84 }), axis({ size: 56, values: (_, ticks) => ticks.map(short) })];

  const MINUTES = 10;
  const lately = { range: (plot) => [plot.data[0].at(-1) - 60 * MINUTES, plot.data[0].at(-1)] };

  const drawActivity = ([all, rates, errors]) => {
    const busy = rates.some((rate) => rate > 0);
    const times = busy ? all : [];
    document.getElementById("still").hidden = busy;
    put("rate-plot", [times, rates], () => ({
      scales: { x: lately, y: fromZero }, axes: axes(),
      series: [when, line("a second", "accent", { fill: `${colour("accent")}22`, points: { show: false } })],
    }));
    put("stream-plot", [times, errors], () => ({
      scales: { x: lately, y: fromZero }, axes: axes(),
      series: [when, line("error", "accent", { points: { show: true, size: 5, fill: colour("accent") } })],
    }));
  };

  // A tick or a cross over each model says whether it promised something.
  let promised = [];
  const marks = (plot) => {
    const ink = plot.ctx;
    ink.save();
    ink.font = `${13 * devicePixelRatio}px system-ui, sans-serif`;
    ink.textAlign = "center";
    ink.fillStyle = colour("ink");
    plot.data[0].forEach((time, k) => {
      const [x, y] = [plot.valToPos(time, "x", true), plot.valToPos(plot.data[1][k], "y", true)];
      ink.fillText(promised[k] ? "✓" : "✗", x, y - 8 * devicePixelRatio);
    });
    ink.restore();
  };
  // Models fitted within one minute would stand on a line of their own.
  const wide = (plot) => {
    const [low, high] = [plot.data[0][0], plot.data[0].at(-1)];
    const room = Math.max(30, (high - low) * 0.06);
    return [low - room, high + room];
  };

  const drawModels = (points) => {
    promised = points.promised;
    put("kept-plot", [points.times, points.kept], () => ({
      scales: { x: { range: wide }, y: { range: [0, 1.12] } }, hooks: { draw: [marks] },
      axes: [axis({ values: clock, space: 84 }), axis({ size: 56, splits: () => [0, 0.25, 0.5, 0.75, 1], values: (_, ticks) => ticks.map((tick) => `${100 * tick}%`) })],
      series: [when, line("kept", "accent", { value: (_, value) => (value === null ? "–" : `${(100 * value).toFixed(1)}%`), points: { show: true, size: 8, fill: colour("accent") } })],
    }));
    put("error-plot", [points.times, points.errors, points.tolerances], () => ({
      scales: { x: { range: wide }, y: fromZero }, axes: axes(),
      series: [
        when,
        line("error", "accent", { points: { show: true, size: 8, fill: colour("accent") } }),
        line("tolerance", "mark", { dash: [7, 4], points: { show: points.times.length === 1, size: 8 } }),
      ],
    }));
  };

  const forget = () => {
    for (const plot of made.values()) plot.destroy();
    made.clear();
  };
  return { drawActivity, drawModels, forget };
})();
