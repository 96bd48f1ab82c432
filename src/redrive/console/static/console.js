// Everything works without this. With it: what is shown stays fresh, rows are reached by keys, texts are copied.

const LIVE_EVERY = 2000;
const byId = (id) => document.getElementById(id);

// --- live parts: an element with data-live is fetched again, by its id, from the address of the page

const tags = new Map();
let lastAnswer = new Date();

function busy(part) {
  // What a person is doing there is not swept away under their hands.
  const focus = document.activeElement;
  const typing = part.contains(focus) && focus.matches("input:not([type=checkbox]), textarea, select");
  const choosing = part.querySelector("input[type=checkbox]:checked") !== null;
  const reading = !getSelection().isCollapsed && part.contains(getSelection().anchorNode);
  const typed = [...part.querySelectorAll("details[open] input:not([type=checkbox])")].some((one) => one.value !== one.defaultValue);
  const deciding = typed || (part.contains(focus) && focus.closest("details[open] form") !== null);
  const pressing = part.querySelector(":active") !== null; // a button that goes away under a finger is not clicked
  return typing || choosing || reading || deciding || pressing;
}

// What a person points at, has chosen or reads stays where it is, whatever comes or goes above it.
const MARKS = "[data-key], section[aria-labelledby]";
const markOf = (element) => element.dataset.key ?? element.getAttribute("aria-labelledby");

let pointer = null; // where it is: what lies there is known at once, while :hover knows of new elements only later
addEventListener("pointermove", (event) => { pointer = [event.clientX, event.clientY]; });
document.documentElement.addEventListener("pointerleave", () => { pointer = null; });

function landmarks() {
  const visible = (one) => { const box = one.getBoundingClientRect(); return box.bottom > 0 && box.top < innerHeight; };
  const pointed = pointer && document.elementFromPoint(...pointer)?.closest(MARKS);
  const focused = document.activeElement.closest(MARKS);
  const read = scrollY > 0 ? [...document.querySelectorAll(MARKS)].filter((one) => one.getBoundingClientRect().top >= 0) : [];
  const found = [pointed, focused, ...read].filter((one) => one && visible(one));
  return found.map((one) => ({ name: markOf(one), top: one.getBoundingClientRect().top }));
}

function hold(part, marks) {
  const standing = new Map([...document.querySelectorAll(MARKS)].map((one) => [markOf(one), one]));
  const mark = marks.find((one) => standing.has(one.name));
  if (!mark) return;
  const moved = () => standing.get(mark.name).getBoundingClientRect().top - mark.top;
  // A page that is too short to be scrolled so far gets room: below, or above where what stood there is gone.
  if (moved() > 0) document.body.style.minHeight = `${scrollY + moved() + innerHeight}px`;
  scrollBy({ top: moved(), behavior: "instant" });
  if (moved() < 0) part.style.paddingTop = `${-moved()}px`;
}

function replace(part, html) {
  const opened = new Set([...part.querySelectorAll("details[id][open]")].map((one) => one.id));
  const focused = part.contains(document.activeElement) ? keyOf(document.activeElement) : null;
  const chosen = part.querySelector("tr.chosen")?.dataset.key;
  const known = new Set([...part.querySelectorAll("[data-key]")].map((one) => one.dataset.key));
  const marks = landmarks();
  const top = scrollY;
  const sideways = [...part.querySelectorAll(".scroll")].map((one) => one.scrollLeft);
  const fresh = new DOMParser().parseFromString(html, "text/html");
  part.replaceChildren(...fresh.body.childNodes);
  for (const id of opened) byId(id)?.setAttribute("open", "");
  for (const row of part.querySelectorAll("[data-key]")) {
    if (known.size && !known.has(row.dataset.key)) row.classList.add("fresh");
    if (row.dataset.key === chosen) row.classList.add("chosen");
  }
  part.querySelectorAll(".scroll").forEach((one, place) => { one.scrollLeft = sideways[place] ?? 0; });
  if (focused) [...part.querySelectorAll("a, button, summary, input, tr[tabindex]")].find((one) => keyOf(one) === focused)?.focus({ preventScroll: true });
  equip(part);
  document.body.style.minHeight = part.style.paddingTop = "";
  scrollTo({ top, behavior: "instant" });
  hold(part, marks);
}

const keyOf = (element) => `${element.tagName} ${element.id} ${element.getAttribute("href")} ${element.getAttribute("name")} ${element.getAttribute("value")}`;

async function refresh(part) {
  const headers = { "X-Fragment": part.dataset.live };
  if (tags.has(part.id)) headers["If-None-Match"] = tags.get(part.id);
  const answer = await fetch(location.href, { headers, cache: "no-store", signal: AbortSignal.timeout(15000) });
  if (answer.status === 401) location.reload();
  if (!answer.ok && answer.status !== 304) throw new Error(answer.status);
  lastAnswer = new Date();
  if (answer.status === 200 && !busy(part)) {
    tags.set(part.id, answer.headers.get("ETag"));
    replace(part, await answer.text());
  }
}

async function keepFresh() {
  const parts = [...document.querySelectorAll("[data-live]")];
  if (parts.length && !document.hidden) {
    const answers = await Promise.allSettled(parts.map(refresh));
    const lost = answers.some((one) => one.status === "rejected");
    byId("lost").hidden = !lost;
    byId("lost-at").textContent = lastAnswer.toLocaleTimeString();
  }
  setTimeout(keepFresh, LIVE_EVERY);
}

// --- keys

const rows = () => [...document.querySelectorAll("tr[data-key]")];

function move(by) {
  const all = rows();
  if (!all.length) return;
  const at = all.findIndex((row) => row.classList.contains("chosen"));
  const next = all[Math.min(Math.max(at + by, 0), all.length - 1)];
  all[at]?.classList.remove("chosen");
  next.classList.add("chosen");
  (next.querySelector("a") ?? next).focus({ preventScroll: true });
  next.scrollIntoView({ block: "nearest" });
}

const chosen = () => document.querySelector("tr.chosen");
const places = { o: "Overview", i: "Incidents", l: "Letters", r: "Redrives", a: "Audit" };
let going = false;

const keys = {
  "/": () => byId("search")?.focus(),
  j: () => move(1),
  k: () => move(-1),
  x: () => chosen()?.querySelector("input[type=checkbox]")?.click(),
  g: () => { going = true; setTimeout(() => { going = false; }, 1500); },
  "?": () => byId("keys").showModal(),
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || byId("keys").open) return;
  if (event.target.matches("input:not([type=checkbox]), textarea, select")) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  if (going && places[event.key]) {
    [...document.querySelectorAll(".top nav a")].find((one) => one.textContent === places[event.key])?.click();
  } else if (event.key === "Enter" && chosen() && (event.target === document.body || event.target === byId("main"))) {
    chosen().querySelector("a")?.click();
  } else if (keys[event.key]) {
    event.preventDefault();
    keys[event.key]();
  }
});

// --- what a part needs once it stands in the page

const SEND_AGAIN_AFTER = 5000;
const sent = new WeakSet();

function count(form) {
  const boxes = [...document.querySelectorAll(`input[type=checkbox][form="${form.id}"][name]`)];
  const number = boxes.filter((one) => one.checked).length;
  for (const shown of document.querySelectorAll(`[data-count="${form.id}"]`)) shown.textContent = number.toLocaleString("en");
  for (const button of document.querySelectorAll(`button[form="${form.id}"], #${form.id} button`)) button.disabled = number === 0;
}

function equip(part) {
  for (const button of part.querySelectorAll("[data-copy]")) {
    button.hidden = false;
    button.onclick = async () => {
      await navigator.clipboard.writeText(byId(button.dataset.copy).textContent);
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    };
  }
  for (const form of part.querySelectorAll("form[data-selects]")) count(form);
  for (const all of part.querySelectorAll("[data-all]")) all.hidden = false;
}

document.addEventListener("change", (event) => {
  const target = event.target;
  if (target.dataset.all) {
    for (const one of document.querySelectorAll(`input[type=checkbox][form="${target.dataset.all}"][name]`)) one.checked = target.checked;
    count(byId(target.dataset.all));
  } else if (target.form?.matches("[data-selects]")) count(target.form);
  else if (target.form?.matches("[data-auto]")) target.form.requestSubmit();
});

// A double click is one. After a while a form can be sent again: a download leaves its page standing.
document.addEventListener("submit", (event) => {
  const form = event.target;
  if ((event.submitter?.formMethod || form.method) !== "post") return;
  if (sent.has(form)) event.preventDefault();
  sent.add(form);
  setTimeout(() => sent.delete(form), SEND_AGAIN_AFTER);
});

byId("keys-button").hidden = false;
byId("keys-button").onclick = () => byId("keys").showModal();
equip(document);
setTimeout(keepFresh, LIVE_EVERY);
