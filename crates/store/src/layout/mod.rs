//! The layout of a save path: file names, iterations, ranks and which iteration comes next. It lists and creates
//! directories and never writes or deletes a file.

mod file_kind;
mod iteration_id;
mod save_path;

pub use file_kind::{FileKind, FoundFile, acknowledged_path, selection_path, set_aside_path};
pub use iteration_id::{IterationId, Split};
pub use save_path::SavePath;
