// A table that is wider than the screen can be moved with the keyboard.
for (const wrap of document.querySelectorAll(".md-typeset__scrollwrap, .md-typeset pre > code")) {
  if (wrap.scrollWidth > wrap.clientWidth) {
    wrap.tabIndex = 0;
  }
}
