// The theme wraps wide tables in a box that scrolls; with a place in the order of tabs the keyboard moves it, too.
const reachable = () => {
  for (const box of document.querySelectorAll(".md-typeset__scrollwrap")) {
    box.tabIndex = 0;
  }
};
new MutationObserver(reachable).observe(document.body, { childList: true, subtree: true });
reachable();
