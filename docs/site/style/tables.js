// The theme wraps wide tables in a scrolling box; with a tab index it can also be scrolled with the keyboard.
const reachable = () => {
  for (const box of document.querySelectorAll(".md-typeset__scrollwrap")) {
    box.tabIndex = 0;
  }
};
new MutationObserver(reachable).observe(document.body, { childList: true, subtree: true });
reachable();
