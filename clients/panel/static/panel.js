"use strict";
/* The panel's own script: the key of this run, navigation, keys, and the live refresh. Every text comes from the server
as HTML that its templates escaped; this script inserts none. */
(() => {
  const view = document.getElementById("view");
  const siblings = new BroadcastChannel("memd-panel");
  let key = sessionStorage.getItem("memd-key");
  let journal = -1;

  const policy = window.trustedTypes?.createPolicy("memd", {
    createHTML: (html) => html,
    createScript: () => { throw new TypeError("no script comes with a screen"); },
  });
  if (policy) htmx.registerExtension("memd-trusted-types", { init: (api) => api.initSecurity(policy) });

  /* --- the key ----------------------------------------------------------------------------------------------- */
  function lock(why) {
    const locked = document.getElementById("locked");
    if (!locked) { location.reload(); return; }
    locked.hidden = false;
    document.getElementById("locked-why").textContent = why;
    document.title = "memd: a link is needed";
  }

  async function swapToken(token) {
    history.replaceState(null, "", location.pathname + location.search);
    const answer = await fetch("/key", { method: "POST", body: token });
    return answer.ok ? (await answer.json()).key : null;
  }

  function askSiblings() {
    return new Promise((resolve) => {
      const listen = (event) => {
        if (event.data.key) { siblings.removeEventListener("message", listen); resolve(event.data.key); }
      };
      siblings.addEventListener("message", listen);
      siblings.postMessage({ wants: "key" });
      setTimeout(() => resolve(null), 400);
    });
  }

  siblings.addEventListener("message", (event) => {
    if (event.data.wants === "key" && key) siblings.postMessage({ key });
    if (event.data.changed) refresh();
  });

  async function open() {
    const token = new URLSearchParams(location.hash.slice(1)).get("token");
    if (token) key = await swapToken(token) ?? key;
    key ??= await askSiblings();
    if (!key) { lock(token ? "This link was used before, or is older than a minute." : ""); return; }
    sessionStorage.setItem("memd-key", key);
    await go(location.pathname + location.search, false);
    watch();
  }

  /* --- navigation -------------------------------------------------------------------------------------------- */
  async function go(address, push = true) {
    await htmx.ajax("GET", address, { target: "#view", swap: "innerHTML" });
    if (push) history.pushState({ memd: true }, "", address);
    mark();
  }

  const WITHIN = { "/triage": "/inbox", "/forget": "/memories" };

  function mark() {
    document.getElementById("rest")?.removeAttribute("open");
    const at = WITHIN[location.pathname.replace(/(?<=.)\/.*/, "")] ?? location.pathname;
    for (const link of document.querySelectorAll("nav.side a")) {
      const path = link.getAttribute("href").split("?")[0];
      const here = path === "/" ? at === "/" : at.startsWith(path);
      if (here) link.setAttribute("aria-current", "page"); else link.removeAttribute("aria-current");
    }
  }

  const here = () => location.pathname + location.search;
  const writes = () => Boolean(view.querySelector("[data-edits]")
    ?? document.activeElement?.matches("input:not([type=range]), textarea, select"));

  /* Requests that the user made and that are not answered yet; a refresh that comes meanwhile is made after them. */
  let asked = 0, late = false;
  const isRefresh = (event) => "X-Memd-Refresh" in event.detail.ctx.request.headers;
  document.addEventListener("htmx:before:request", (event) => { if (!isRefresh(event)) asked += 1; });
  document.addEventListener("htmx:finally:request", (event) => {
    if (isRefresh(event)) return;
    asked -= 1;
    if (late && !asked) { late = false; setTimeout(refresh); }
  });

  /* The screen is asked for again, unless the user is writing or asked for something. An answer that comes after the user
  went on is dropped. */
  async function refresh() {
    if (asked) late = true;
    if (writes() || asked || view.querySelector("[data-still]")) return; /* still: its answer takes the daemon seconds */
    const address = here();
    await htmx.ajax("GET", address, { target: "#view", swap: "innerHTML", headers: { "X-Memd-Refresh": address } });
  }

  /* After a refresh, the element that had the focus when the answer came has it again, or the row in its place; open parts stay open. */
  let restore = () => {};

  function kept() {
    const field = document.activeElement;
    const id = field?.id, scroll = [scrollX, scrollY];
    const row = rows().findIndex((row) => row.contains(field));
    const opened = [...view.querySelectorAll("details[open][id]")].map((part) => part.id);
    return () => {
      for (const part of opened) document.getElementById(part)?.setAttribute("open", "");
      const again = (id && document.getElementById(id)) || rows()[Math.min(row, rows().length - 1)];
      if (again) focusRow(again, { preventScroll: true });
      scrollTo(...scroll);
    };
  }

  document.addEventListener("htmx:before:swap", (event) => {
    const address = event.detail.ctx.request.headers["X-Memd-Refresh"];
    if (!address) return;
    if (asked) late = true;
    if (address !== here() || writes() || asked) event.preventDefault();
    else restore = kept();
  });

  document.addEventListener("htmx:config:request", (event) => {
    event.detail.ctx.request.headers["X-Memd-Key"] = key ?? "";
  });
  document.addEventListener("htmx:before:history:restore", (event) => event.preventDefault());
  addEventListener("popstate", () => go(location.pathname + location.search, false));

  document.addEventListener("htmx:after:request", (event) => {
    if (event.detail.ctx.response.status === 401) {
      sessionStorage.removeItem("memd-key");
      location.reload();
    }
  });

  document.addEventListener("htmx:after:swap", (event) => {
    if (event.detail.ctx.target !== view) return;
    mark();
    const wanted = view.querySelector("[data-focus]");
    if (isRefresh(event)) restore();
    else if (wanted) wanted.focus();
    else if (!event.detail.ctx.sourceElement.matches?.("body")) view.querySelector("h1")?.focus({ preventScroll: true });
  });

  document.addEventListener("memd-changed", (event) => {
    const address = event.detail?.go;
    siblings.postMessage({ changed: true });
    setTimeout(() => address ? go(address) : refresh()); /* when the request of the change is over */
  });

  /* --- live refresh: the journal's next operation, wherever it comes from ------------------------------------ */
  async function watch() {
    for (;;) {
      try {
        const answer = await fetch(`/changes?after=${journal}`, { headers: { "X-Memd-Key": key } });
        if (answer.status === 401) return;
        if (!answer.ok) throw new Error("memd is stopped");
        const { last } = await answer.json();
        if (last < 0) return;
        if (journal >= 0 && last > journal && !document.hidden) await refresh();
        journal = last;
      } catch {
        await new Promise((resolve) => setTimeout(resolve, 2000));
      }
    }
  }

  /* --- keys -------------------------------------------------------------------------------------------------- */
  const places = { s: "/", m: "/memories", p: "/map", f: "/fading", i: "/inbox", a: "/activity", k: "/skills", e: "/agents", w: "/reports", r: "/readers", h: "/sharing", t: "/settings" };
  let goes = false;

  function rows() { return [...view.querySelectorAll("[data-row]")]; }

  function focusRow(row, options) {
    const focusable = "a, button, summary, [tabindex]";
    (row.matches(focusable) ? row : row.querySelector(focusable))?.focus(options);
  }

  function move(step) {
    const all = rows();
    if (!all.length) return;
    const now = all.findIndex((row) => row.contains(document.activeElement));
    focusRow(all[Math.min(Math.max(now + step, 0), all.length - 1)]);
  }

  function press(name) {
    const focused = document.activeElement?.closest("[data-row]"), row = focused ?? view;
    const button = focused?.querySelector(`[data-row-key="${name}"]`) ?? row.querySelector(`[data-key="${name}"]`)
      ?? document.querySelector(`#notice [data-key="${name}"]`) ?? view.querySelector(`[data-key="${name}"]`);
    const itsRow = button?.closest("[data-row]");
    if (itsRow && !itsRow.contains(document.activeElement)) focusRow(itsRow); /* seen before it is decided */
    else button?.click();
    return Boolean(button);
  }

  document.addEventListener("keydown", (event) => {
    const inField = event.target.matches("input:not([type=range]), textarea, select");
    if (event.key === "Escape") {
      if (inField) event.target.blur();
      const rest = document.querySelector("#rest[open]");
      if (rest) { rest.open = false; rest.firstElementChild.focus(); return; }
      press("Escape");
      return;
    }
    if (inField || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    if (goes && places[event.key]) { goes = false; event.preventDefault(); go(places[event.key]); return; }
    goes = event.key === "g";
    if (event.key === "/") { event.preventDefault(); document.getElementById("ask")?.focus(); return; }
    if (event.key === "?") { document.getElementById("keys").showModal(); return; }
    if (event.key === "j" || event.key === "k") { move(event.key === "j" ? 1 : -1); event.preventDefault(); return; }
    const steps = event.key.startsWith("Arrow") && event.target.type !== "range";
    if ((event.key.length === 1 || steps) && press(event.key)) event.preventDefault();
  });

  /* A change can be made once the page shows what it changes, for just the text that stands in the field. */
  function allow(form) {
    const seen = form.querySelector("[data-previewed]")?.dataset.previewed;
    form.querySelector("button.go").disabled = seen !== form.elements.text.value.trim();
  }

  document.addEventListener("htmx:after:swap", () => view.querySelectorAll("form[data-previews]").forEach(allow));

  document.addEventListener("input", (event) => {
    if (event.target.form?.matches("[data-previews]")) allow(event.target.form);
    const word = event.target.dataset.enables;
    if (word) event.target.form.querySelector("button").disabled = event.target.value.trim() !== word;
  });

  document.addEventListener("change", (event) => {
    for (const choice of event.target.form?.querySelectorAll("[data-opens]") ?? []) {
      choice.form.elements[choice.dataset.opens].disabled = !choice.checked;
    }
    const addresses = event.target.dataset.when;
    if (addresses) go(JSON.parse(addresses)[event.target.value]);
  });

  document.addEventListener("toggle", (event) => {
    if (event.target.open) event.target.querySelector("[hx-trigger]")?.dispatchEvent(new Event("opened"));
  }, true);

  document.addEventListener("click", (event) => {
    if (event.target.closest("#show-keys")) document.getElementById("keys").showModal();
    if (event.target.closest("[data-closes]")) {
      const part = event.target.closest("details");
      part.open = false;
      part.querySelector("summary").focus();
    }
    if (event.target.closest("#close-notice")) document.getElementById("notice").replaceChildren();
  });

  open();
})();
