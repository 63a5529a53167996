//! Obstacles: elements that are scrolled out of view, zoomed, transformed, covered or hidden.

use super::{Obstacle, page};

pub(super) const OBSTACLES: &[Obstacle] = &[
    page!(
        "scroll",
        "Nested scrolling",
        "Boxes that scroll inside boxes that scroll, both ways, each by itself."
    ),
    page!(
        "sticky",
        "Sticky header",
        "An element scrolled under a sticky header is brought out before it is clicked."
    ),
    page!(
        "long",
        "Ten screens",
        "A page of ten screens: elements far below are reached, paging moves by the right amount."
    ),
    page!("infinite", "Endless list", "Scrolling to the end loads more."),
    page!(
        "wide",
        "Sideways",
        "A page four screens wide: coordinates stay right when it is scrolled sideways."
    ),
    page!("zoom", "Zoomed page", "CSS zoom on the page and inside it: coordinates stay right."),
    page!(
        "transform",
        "Transformed elements",
        "Scaled, rotated and skewed elements are clicked where they are drawn."
    ),
    page!("hidden", "Hidden things", "Nothing invisible or unusable is offered; each visible twin is."),
    page!(
        "huge-target",
        "Huge target",
        "An element over nine tenths of the screen is clickable but not worth a mark."
    ),
];
