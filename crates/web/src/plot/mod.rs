//! Curves over iterations or trajectories, drawn as SVG and PNG. Pure functions compute the values from trajectory summaries; one layout
//! produces the shapes for both formats, so that the two images look the same.

mod chart;
mod curves;
mod ema;
mod iteration_stats;
mod layout;
mod legend;
mod png;
mod shapes;
mod svg;
mod ticks;

pub use chart::{Chart, ChartOptions, Charts, Line, Measure, Series, Unit, XAxis};
pub use curves::Curves;
pub use ema::Ema;
pub use iteration_stats::IterationStats;

/// Why a PNG could not be drawn.
#[derive(Debug, thiserror::Error)]
pub enum PlotError {
    #[error("the image is too large to draw")]
    TooLarge,
    #[error("cannot read the embedded font")]
    Font,
    #[error("cannot encode the PNG: {0}")]
    Encode(#[from] ::png::EncodingError),
}

/// Draws the charts as an SVG document.
pub fn svg(charts: &Charts) -> String {
    svg::render(&layout::draw(charts))
}

/// Draws the charts as a PNG file, at twice the size so that it is sharp on high-resolution screens.
pub fn png(charts: &Charts) -> Result<Vec<u8>, PlotError> {
    png::render(&layout::draw(charts))
}

#[cfg(test)]
mod tests;
