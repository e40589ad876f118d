// Keys: / searches, j and k move through runs or through a conversation, Escape goes back.
function startKeys() {
  const list = byID("list"), search = byID("filter-text");
  const toList = () => {
    if (list.hidden) location.hash = listAddress;
  };
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || event.defaultPrevented) return;
    const field = event.target.closest?.("input, select");
    if (event.key === "Escape" && field) {
      if (field === search && search.value) {
        search.value = "";
        search.dispatchEvent(new Event("input", { bubbles: true }));
      } else field.blur();
    } else if (event.key === "Escape") {
      toList();
    } else if (field && field.type !== "checkbox") {
      return;
    } else if (event.key === "/") {
      toList();
      if (list.hidden) addEventListener("hashchange", () => search.focus(), { once: true });
      else search.focus();
    } else if (event.key === "j" || event.key === "k") {
      move(event.key === "j" ? 1 : -1);
    } else return;
    event.preventDefault();
  });

  function move(by) {
    const stops = list.hidden ? [...document.querySelectorAll("#run .items > .item:not([hidden])")] : [...document.querySelectorAll("#table tbody .c-task a")];
    const focus = document.activeElement;
    const own = focus.closest?.(".item, #table tbody tr");
    const at = stops.findIndex((stop) => stop === own || stop.closest("tr")?.contains(own));
    const next = stops[at < 0 ? (by > 0 ? 0 : stops.length - 1) : at + by];
    next?.focus({ preventScroll: true });
    next?.scrollIntoView({ block: "nearest" });
  }
}
