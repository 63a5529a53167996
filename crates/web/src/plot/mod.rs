//! Curves over iterations as SVG and PNG.
