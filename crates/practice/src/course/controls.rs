//! Obstacles: controls to click, choose from and type into.

use super::{Obstacle, page};

pub(super) const OBSTACLES: &[Obstacle] = &[
    page!(
        "buttons",
        "Buttons",
        "A click reaches exactly the element it was meant for, even among many small ones."
    ),
    page!(
        "hover",
        "Hover menus",
        "Moving the mouse opens menus; what only shows while hovered can be clicked."
    ),
    page!(
        "shadow",
        "Shadow DOM",
        "Buttons and inputs inside open shadow roots, two deep, are found and work."
    ),
    page!(
        "iframes",
        "Frames",
        "A same-origin frame and a srcdoc frame: their elements are found at the right offset and scroll."
    ),
    page!("iframes-nested", "Nested frames", "Elements of a frame inside a frame are reached."),
    page!(
        "iframes-cross",
        "Cross-origin frame",
        "A frame of another origin neither breaks nor blocks anything."
    ),
    page!(
        "select",
        "Select boxes",
        "Choosing an option fires input and change once, and never takes a disabled option."
    ),
    page!("listbox", "ARIA listboxes", "Options made of plain elements with roles can be opened and chosen."),
    page!(
        "inputs",
        "Inputs of every type",
        "Each type of input takes its kind of value; disabled and read-only ones stay as they are."
    ),
    page!(
        "editable",
        "Editable areas",
        "Typing works in textareas and contenteditable elements and replaces what was there when asked."
    ),
    page!(
        "controlled",
        "Controlled inputs",
        "Typing reaches inputs that a framework redraws from its own state."
    ),
    page!(
        "keys",
        "Key events",
        "Keys arrive as keydown, keypress, beforeinput, input and keyup with key, code and modifiers."
    ),
    page!(
        "clipboard",
        "Clipboard",
        "Copying and pasting by keys, by commands and by scripts: text, HTML and images, in every frame."
    ),
    page!(
        "mouse",
        "Every mouse button",
        "Buttons, double and triple clicks, modifiers, the wheel, and drags that the page or the browser handles."
    ),
    page!(
        "clickable",
        "Clickable without a button",
        "Pointer cursors, onclick, tabindex and roles: what invites a click is found, what does not is not."
    ),
    page!(
        "modal",
        "Modals and banners",
        "Native dialogs, popovers and a consent banner cover the page and can be dealt with."
    ),
];
