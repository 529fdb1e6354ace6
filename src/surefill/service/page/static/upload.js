"use strict";
// A file is sent in parts of whole lines, one after another, so that a file of any size can be stored, what is stored is
// known at any time, and a part whose answer was lost can be sent again: the service stores each once.
const upload = (() => {
  const LINES = 10000;
  const BYTES = 4 << 20;
  const TRIES = 6;
  const NEWLINE = 10;
  const pause = (seconds) => new Promise((done) => setTimeout(done, 1000 * seconds));
  const count = (n) => n.toLocaleString("en");

  // The next part of a file from a place: at most LINES whole lines and BYTES bytes; one longer line is a part.
  const nextPart = async (file, start) => {
    for (let room = BYTES; ; room *= 2) {
      const bytes = new Uint8Array(await file.slice(start, start + room).arrayBuffer());
      const last = start + bytes.length >= file.size;
      let end = 0;
      let lines = 0;
      for (let at = bytes.indexOf(NEWLINE); at >= 0 && lines < LINES; at = bytes.indexOf(NEWLINE, at + 1)) {
        end = at + 1;
        lines += 1;
      }
      if (last && lines < LINES && end < bytes.length) return { bytes, lines: lines + 1 };
      if (end > 0 || last) return { bytes: bytes.subarray(0, end), lines };
    }
  };

  const send = async (address, type, body, say) => {
    for (let tries = 1; ; tries += 1) {
      let answer = null;
      try {
        answer = await fetch(address, { method: "POST", body, headers: { "Content-Type": type } });
      } catch (lost) {
        if (tries >= TRIES) throw new Error("the service does not answer; send the file again later, what is stored is not stored twice.");
      }
      if (answer && ![408, 429, 503].includes(answer.status)) return answer;
      if (answer && tries >= 5 * TRIES) return answer;
      say("The service is busy; it is asked again in a moment.");
      await pause(answer ? Number(answer.headers.get("Retry-After")) || 1 : tries);
    }
  };

  const sendFile = async (form, file, tools) => {
    const options = new URLSearchParams([...new FormData(form)].filter(([, value]) => value !== ""));
    const type = /\.(ndjson|jsonl|json)$/i.test(file.name) ? "application/x-ndjson" : "text/csv";
    let [start, lines, stored, again, header] = [0, 0, 0, 0, null];
    tools.show(0, `Sending ${file.name} …`);
    do {
      const part = await nextPart(file, start);
      const pieces = header === null ? [part.bytes] : [header, part.bytes];
      options.set("before", String(header === null ? lines : lines - 1));
      const answer = await send(`${form.getAttribute("action")}?${options}`, type, new Blob(pieces), (words) => tools.show(start / file.size, words));
      if (answer.status === 401) return tools.signIn();
      if (!answer.ok) {
        const before = stored + again > 0 ? ` The ${count(stored + again)} observations before it are stored, nothing after them.` : " Nothing was stored.";
        throw new Error(tools.sentenceOf(await answer.text(), answer.status) + before);
      }
      const told = await answer.json();
      if (start === 0 && told.header) header = part.bytes.slice(0, part.bytes.indexOf(NEWLINE) + 1);
      start += part.bytes.length;
      lines += part.lines;
      stored += told.repeated ? 0 : told.stored;
      again += told.repeated ? told.stored : 0;
      tools.show(start / file.size, `${count(stored + again)} observations are stored.`);
      htmx.trigger(document.body, "stored");
    } while (start < file.size);
    const twice = again ? ` ${stored ? count(again) : "All"} of them had been stored before and were not stored again.` : "";
    return tools.show(1, `✓ ${count(stored + again)} observations of ${file.name} are stored.${twice}`);
  };

  const attach = (form, { tell, sentenceOf, signIn }) => {
    const [input, drop, button] = [form.querySelector("input[type=file]"), form.querySelector(".drop"), form.querySelector("button")];
    const [area, bar, told] = ["progress", "bar", "told"].map((name) => document.getElementById(name));
    const name = drop.querySelector("strong");
    const show = (share, words) => {
      area.hidden = false;
      bar.value = share;
      told.textContent = words;
    };
    let busy = false;
    input.addEventListener("change", () => { name.textContent = input.files[0]?.name ?? "Choose a file"; });
    for (const kind of ["dragenter", "dragover"]) drop.addEventListener(kind, (event) => { event.preventDefault(); drop.classList.add("over"); });
    for (const kind of ["dragleave", "drop"]) drop.addEventListener(kind, (event) => { event.preventDefault(); drop.classList.remove("over"); });
    drop.addEventListener("drop", (event) => {
      if (!event.dataTransfer.files.length) return;
      input.files = event.dataTransfer.files;
      input.dispatchEvent(new Event("change"));
    });
    addEventListener("beforeunload", (event) => { if (busy) event.preventDefault(); });
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      tell("");
      [busy, button.disabled] = [true, true];
      try {
        await sendFile(form, input.files[0], { show, sentenceOf, signIn });
      } catch (problem) {
        tell(problem.message);
        told.textContent = "";
        area.hidden = true;
      }
      [busy, button.disabled] = [false, false];
    });
  };
  return { attach };
})();
