//! WACZ: an archive as one ZIP file with its index, a list of pages and digests of everything.

mod pack;
mod unpack;

pub use pack::pack;
pub use unpack::{UnpackLimits, unpack};
