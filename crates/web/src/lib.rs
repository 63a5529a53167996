//! The web pages of webgym: the live monitor of a run, that of a training loop, the viewer of saved trajectories, and plots
//! over iterations. Owns the HTTP routes and the embedded pages; reads the state of a run and the files of `store`, and never
//! changes either.

pub mod access;
pub mod monitor;
pub mod page;
pub mod plot;
pub mod server;
pub mod training_loop;
pub mod view;
