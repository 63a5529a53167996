//! Curves over iterations, and their drawing as SVG and PNG. The numbers are made of summaries by pure functions; one
//! layout gives the shapes that both writers put down, so the two pictures are the same.

mod chart;
mod curves;
mod digest;
mod ema;
mod layout;
mod legend;
mod png;
mod shape;
mod svg;
mod ticks;

pub use chart::{Chart, Charts, Line, Measure, Series, Unit};
pub use curves::Curves;
pub use digest::{Digest, TaskKey};
pub use ema::Ema;

#[derive(Debug, thiserror::Error)]
pub enum PlotError {
    #[error("the picture is too large to be drawn")]
    TooLarge,
    #[error("cannot read the embedded font")]
    Font,
    #[error("cannot encode the picture: {0}")]
    Encode(#[from] ::png::EncodingError),
}

/// The charts as an SVG document.
pub fn svg(charts: &Charts) -> String {
    svg::write(&layout::draw(charts))
}

/// The same as a PNG file, at twice the size so that it stays sharp.
pub fn png(charts: &Charts) -> Result<Vec<u8>, PlotError> {
    png::paint(&layout::draw(charts))
}

#[cfg(test)]
mod tests;
