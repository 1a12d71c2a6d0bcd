// Opens a session from a link's fragment, and keeps it where the browser keeps no cookie.
(() => {
  "use strict";
  const html = document.documentElement, name = "surehook.portal." + html.dataset.handle;
  const kept = () => { try { return sessionStorage.getItem(name); } catch { return null; } };
  const keep = s => { try { sessionStorage.setItem(name, s); return true; } catch { return false; } };

  // A link's fragment has the token. It leaves the address before anything else is done.
  const token = location.hash.slice(1);
  if (html.dataset.start !== undefined && token) {
    history.replaceState(null, "", location.pathname);
    const form = document.querySelector("form");
    form.elements.token.value = token;
    form.submit();
    return;
  }
  // The cookie did not come back.
  if (html.dataset.keep) {
    if (keep(html.dataset.keep)) location.replace("./");
    return;
  }
  const session = kept();
  if (!session) return;
  // The page was asked for without the session: it is asked for again, with it.
  if (html.dataset.over !== undefined) {
    fetch(location.href, { headers: { "Surehook-Session": session } }).then(async r => {
      if (r.status === 401) { sessionStorage.removeItem(name); return; }
      const text = await r.text();
      document.open(); document.write(text); document.close();
    }).catch(() => {});
    return;
  }
  // app.js, too, asks with the session for what has changed.
  const plain = window.fetch;
  window.fetch = (at, how) => plain(at, { ...how, headers: { ...how?.headers, "Surehook-Session": session } });
  document.addEventListener("submit", e => {
    if (e.target.method !== "post" || e.target.elements.session) return;
    const field = document.createElement("input");
    field.type = "hidden"; field.name = "session"; field.value = session;
    e.target.append(field);
  });
})();
