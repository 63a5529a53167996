//! Saved trajectories for the viewer, read through `store`'s indexes.
