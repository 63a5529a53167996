//! What people look at: the live monitor of a run, the viewer of what was collected, plots over iterations. Owns
//! the routes and the embedded page; reads the board of a run and the files of `store`, and never changes either.

pub mod monitor;
pub mod page;
pub mod plot;
pub mod view;
