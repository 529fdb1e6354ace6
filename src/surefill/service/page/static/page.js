"use strict";
// What htmx leaves to say: problems as sentences, a session that has ended, a service that does not answer.
(() => {
  const byId = (name) => document.getElementById(name);

  // The place for problems nearest to what was asked: in the element, else in its section.
  const placeFor = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const place = at.querySelector(":scope > [data-problem], :scope > form > [data-problem]");
      if (place) return place;
    }
    return null;
  };
  const tell = (element, sentence) => {
    const place = placeFor(element);
    if (!place) return;
    place.hidden = !sentence;
    place.textContent = sentence ? `✗ ${sentence[0].toUpperCase()}${sentence.slice(1)}` : "";
  };
  const sentenceOf = (text, status) => {
    try { return JSON.parse(text).detail; } catch { return `The service answered with status ${status}.`; }
  };
  const polled = (element) => (element.getAttribute("hx-trigger") || "").includes("every ");
  const answered = (yes) => { byId("lost").hidden = yes; };
  const signIn = () => { location.href = "/page/sign-in"; };

  document.addEventListener("htmx:beforeRequest", (event) => {
    if (document.hidden && polled(event.detail.elt)) event.preventDefault();
    else if (!polled(event.detail.elt)) tell(event.detail.elt, "");
  });
  document.addEventListener("htmx:sendError", () => answered(false));
  document.addEventListener("htmx:timeout", () => answered(false));
  document.addEventListener("htmx:afterRequest", (event) => {
    const { xhr, elt, successful } = event.detail;
    if (!xhr || xhr.status === 0) return;
    answered(true);
    if (successful) return;
    if (xhr.status === 401) signIn();
    else if (!polled(elt)) tell(elt, sentenceOf(xhr.responseText, xhr.status));
    else if (xhr.status === 404) location.reload();
  });

  // The promise and the charts of models are fetched again when another model is in use.
  let model = null;
  const follow = () => {
    const figures = document.querySelector("[data-model]");
    if (!figures) return;
    if (model !== null && figures.dataset.model !== model) htmx.trigger(document.body, "new-model");
    model = figures.dataset.model;
    for (const part of document.querySelectorAll(".with-report")) part.hidden = figures.dataset.reported !== "true";
    for (const part of document.querySelectorAll(".no-report")) part.hidden = figures.dataset.reported === "true";
    charts.drawActivity(JSON.parse(figures.dataset.series));
  };
  const history = () => {
    const points = document.querySelector("[data-points]");
    if (points) charts.drawModels(JSON.parse(points.dataset.points));
  };
  document.addEventListener("htmx:afterSwap", (event) => {
    if (event.detail.target.id === "live") follow();
    if (event.detail.target.id === "promised") history();
    if (event.detail.target.id === "row-view") byId("row-view").scrollIntoView({ block: "nearest" });
  });

  // A row that was chosen stands in the box and in the address, so that it can be shared and reloaded.
  document.addEventListener("htmx:configRequest", (event) => {
    if (event.detail.target !== byId("row-view")) return;
    const row = event.detail.elt.dataset.row ?? byId("row-input").value;
    byId("row-input").value = row;
    byId("ask-row").value = row;
    window.history.replaceState(null, "", `?${new URLSearchParams({ row })}#row`);
  });

  const form = document.querySelector("[data-upload]");
  if (form) upload.attach(form, { tell: (sentence) => tell(form, sentence), sentenceOf, signIn });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { charts.forget(); follow(); history(); });
  follow();
  history();
  document.documentElement.dataset.ready = "1";
})();
